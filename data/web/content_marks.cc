#include "data/web/content_marks.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

namespace tokamak {

namespace {

enum Pattern {
  kArticleId,
  kArticleClass,
  kStoryId,
  kStoryClass,
  kMainId,
  kMainClass,
  kCommentId,
  kCommentClass,
  kCommentListId,
  kBoilerplateId,
  kBoilerplateClass,
  kHiddenId,
  kHiddenClass,
  kHiddenStyle,
  kAppended,
  kConsent,
  kFrame,
  kWrapper,
  kUnlikely,
  kMaybeLikely,
  kPositive,
  kNegative,
  kPatterns
};

#define COMMON_MARKS "^shar|social|viral|newsletter|syndication|tags|sidebar|banner|bread-?crumb|button|author"

constexpr std::array<const char*, kPatterns> kSources = {
    "(?:entry|article|art)-content|article__content|article(?:-|__)?body|articleBody|body-text",
    "post[-_]text|post-body|post-?entry|post[-_]?content|postContent|post_inner_wrapper|article-?text|articleText|"
    "(?:entry|page|text|article|art)-content|article__content|article(?:-|__)?body|articleBody|ArticleContent|body-text|"
    "article__container",
    "^primary|story-body",
    "(?i:fulltext)|^article |post-bodycopy|story-?content|(?:theme|blog|section|single)-content|single-post|main-column|"
    "wpb_text_column|story-body|field-body",
    "content-main|content-body|contentBody|[Mm]ain-[Cc]ontent",
    "content[-_]main|content(?:-|__)body|[Mm]ain-[Cc]ontent|[Pp]age-[Cc]ontent",
    "^[Cc]omment(?:[^a]|$|a[^r]|ar[^y])|^comol|^disqus_thread|^dsq-comments",
    "^[Cc]omment(?:[^a]|$|a[^r]|ar[^y])|(?:article|post)-comments",
    "^[Cc]omment(?:[^a]|$|a[^r]|ar[^y])|^comol",
    COMMON_MARKS
    "|^(?:jp-|dpsp-content)|bmdh|footer|Footer|share|Share|nav|Nav|menu|related|message-container|premium|^ad-",
    COMMON_MARKS
    "|^(?:nav|post-nav|ZendeskForm)|subnav|avigation|navbar|navbox|menu|bar| ad |-ad-|(?:^| )ad-|dfp[Aa]d|outbrain|taboola|"
    "criteo|paid-?content|widget|footer|Footer|byline|Byline|share-|sociable|embed|tag-list|consent|modal-content|"
    "permission|elated|next-|-stories|most-popular|more-on|meta|rating|attachment|timestamp|user-info|user-profile|-icon|"
    "article-infos|message-container|slide|viewport|overlay|options|expand|obfuscated|blurred|mol-factbox|yin|zlylin|"
    "nfoline",
    "hidden|reader-comments|akismet|^reply-",
    "^hide-|comments-title|nocomments|-reply-|message|akismet|suggest-links|-hide-|hide-print| hidden| hide|noprint|"
    "notloaded|^reply-",
    "hidden|display: ?none",
    "mvp-post-add-(?:box|wrap)|infinite-?scroll",
    "(?i:cookie[-_]?(?:banner|bar|consent|law|notice|policy|description)|notice[-_]{0,2}cookie|"
    "consent[-_]?(?:banner|manager|sdk)|borlabs|cookiebot|cmplz|onetrust|moove[-_]?gdpr)",
    "(?i:(?:^|[\\s_-])(?:skip-?(?:to|link)?|sign-?(?:in|up)|log-?(?:in|on)|register|social|share|sharing|follow-?us|logo|"
    "ads?|advert(?:s|isements?|ising)?|sponsor(?:ed)?|promo(?:tion)?s?|nav(?:bar|igation)?|menu|bread-?crumbs?|pager|"
    "pagination|recommended|related|more-(?:from|stories|posts)|read-(?:more|next)|comments?|replies|disqus|search|side-?bar|"
    "modal|pop-?up|overlay|gallery|carousel|slide(?:r|show)?|print(?:-only)?|toolbar|post-?meta|by-?line|tags?|cookies?|"
    "consent|gdpr|newsletter|subscri(?:be|ption)|foot(?:er)?|copyright|screen-reader-text|visually-hidden|sr-only)"
    "(?:$|[\\s_-]))",
    "(?i:(?:^|[\\s_-])(?:article|entry|post|story|content|body|text|page|main)(?:$|[\\s_-]))",
    "(?i:combx|comment|community|disqus|extra|foot|header|menu|remark|rss|shoutbox|sidebar|sponsor|ad-break|agegate|"
    "pagination|pager|popup|tweet|twitter)",
    "(?i:and|article|body|column|content|main|shadow)",
    "(?i:article|body|content|entry|main|page|pagination|post|text|blog|story)",
    "(?i:button|combx|comment|com-|contact|figure|foot|form|input|masthead|media|meta|outbrain|promo|related|scroll|shoutbox|"
    "sidebar|sponsor|shopping|tags|tool|widget)"};

bool is_part(std::string_view tag) {
  return one_of(tag, {"div", "li", "dd", "dt", "ul", "ol", "dl", "p", "section", "span"});
}

}  // namespace

struct ContentMarks::Patterns {
  std::array<std::unique_ptr<re2::RE2>, kPatterns> compiled;
};

ContentMarks::ContentMarks() : patterns_(std::make_unique<Patterns>()) {
  for (size_t i = 0; i < kSources.size(); ++i) patterns_->compiled[i] = std::make_unique<re2::RE2>(kSources[i]);
}

ContentMarks::~ContentMarks() = default;

bool ContentMarks::matches(int pattern, std::string_view name) {
  if (name.empty()) return false;
  std::string key(name.substr(0, 400));
  key += static_cast<char>('A' + pattern);
  const auto [found, is_new] = known_.try_emplace(std::move(key));
  if (is_new) {
    const re2::StringPiece text(name.data(), std::min<size_t>(name.size(), 400));
    found->second = re2::RE2::PartialMatch(text, *patterns_->compiled[static_cast<size_t>(pattern)]) ? 1 : 0;
  }
  return found->second != 0;
}

bool ContentMarks::is_content(const PageTree& tree, NodeIndex node, int step) {
  const std::string_view tag = tree[node].tag;
  if (!one_of(tag, {"article", "div", "main", "section"})) return false;
  const std::string_view id = tree.attribute(node, "id"), name = tree.attribute(node, "class");
  const std::string_view role = tree.attribute(node, "role");
  switch (step) {
    case 0:
      return name == "post" || name == "entry" || tree.attribute(node, "itemprop") == "articleBody" ||
             id == "articleContent" || matches(kArticleId, id) || matches(kArticleClass, name);
    case 1:
      return tag == "article";
    case 2:
      return role == "article" || id == "article" || id == "story" ||
             one_of(name, {"postarea", "art-postcontent", "text", "cell", "story"}) || matches(kStoryId, id) ||
             matches(kStoryClass, name);
    case 3:
      return id == "content" || name == "content" || matches(kMainId, id) || matches(kMainClass, name);
    default:
      return tag == "main" || id.starts_with("main") || name.starts_with("main") || role.starts_with("main");
  }
}

bool ContentMarks::is_comment(const PageTree& tree, NodeIndex node) {
  const std::string_view tag = tree[node].tag, id = tree.attribute(node, "id"), name = tree.attribute(node, "class");
  if (one_of(tag, {"div", "section", "details"})) return matches(kCommentId, id) || matches(kCommentClass, name);
  return one_of(tag, {"ol", "ul", "dl"}) && (matches(kCommentListId, id) || matches(kCommentClass, name));
}

bool ContentMarks::is_boilerplate(const PageTree& tree, NodeIndex node) {
  const std::string_view id = tree.attribute(node, "id"), name = tree.attribute(node, "class");
  if (is_part(tree[node].tag)) {
    const std::string_view role = tree.attribute(node, "role"), first = id.empty() ? name : id;
    if (role.find("nav") != role.npos || role.find("Nav") != role.npos) return true;
    if (first.find("cookie") != first.npos || tree.has_attribute(node, "data-lp-replacement-content")) return true;
    if (matches(kBoilerplateId, id) || matches(kBoilerplateClass, name)) return true;
  }
  return matches(kHiddenId, id) || matches(kHiddenClass, name) || tree.attribute(node, "aria-hidden") == "true" ||
         matches(kHiddenStyle, tree.attribute(node, "style"));
}

bool ContentMarks::is_teaser(const PageTree& tree, NodeIndex node) {
  if (!is_part(tree[node].tag)) return false;
  const auto marked = [](std::string_view name) {
    return name.find("teaser") != name.npos || name.find("Teaser") != name.npos;
  };
  return marked(tree.attribute(node, "id")) || marked(tree.attribute(node, "class"));
}

bool ContentMarks::is_appended(const PageTree& tree, NodeIndex node) {
  if (!one_of(tree[node].tag, {"div", "section", "aside"})) return false;
  return matches(kAppended, tree.attribute(node, "id")) || matches(kAppended, tree.attribute(node, "class"));
}

bool ContentMarks::is_unlikely(const PageTree& tree, NodeIndex node) {
  if (one_of(tree[node].tag, {"html", "body"})) return false;
  const std::string_view id = tree.attribute(node, "id"), name = tree.attribute(node, "class");
  return (matches(kUnlikely, id) || matches(kUnlikely, name)) && !matches(kMaybeLikely, id) &&
         !matches(kMaybeLikely, name);
}

int ContentMarks::weight(const PageTree& tree, NodeIndex node) {
  int weight = 0;
  for (const std::string_view name : {tree.attribute(node, "class"), tree.attribute(node, "id")})
    weight += (matches(kPositive, name) ? 25 : 0) - (matches(kNegative, name) ? 25 : 0);
  return weight;
}

bool ContentMarks::is_frame(const PageTree& tree, NodeIndex node) {
  return matches(kFrame, tree.attribute(node, "class")) || matches(kFrame, tree.attribute(node, "id"));
}

bool ContentMarks::is_wrapper(const PageTree& tree, NodeIndex node) {
  return matches(kWrapper, tree.attribute(node, "class")) || matches(kWrapper, tree.attribute(node, "id"));
}

bool ContentMarks::is_banner(const PageTree& tree, NodeIndex node) {
  return matches(kConsent, tree.attribute(node, "id")) || matches(kConsent, tree.attribute(node, "class"));
}

}  // namespace tokamak
