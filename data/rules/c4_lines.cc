#include "data/rules/c4_lines.h"

#include <algorithm>

#include "base/utf8.h"
#include "data/rules/ascii.h"
#include "data/rules/bytes.h"
#include "data/rules/terminal_marks.h"
#include "data/rules/text_lines.h"
#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

namespace {

constexpr std::string_view kPolicyPhrases[] = {"terms of use", "privacy policy"};
constexpr std::string_view kCookiePhrases[] = {"cookie policy", "uses cookies", "use of cookies", "use cookies"};
constexpr std::string_view kCitations[] = {"[edit]", "[citation needed]"};

bool is_punctuation(char32_t code) {
  const std::span<const uint32_t> runs = category_runs();
  const auto after = std::upper_bound(runs.begin(), runs.end(), static_cast<uint32_t>(code) << 5 | 31);
  const auto category = static_cast<Category>(*(after - 1) & 31);
  return category >= Category::kPc && category <= Category::kPo;
}

// The length of "[12]", "[edit]" or "[citation needed]" at the front of `text`; 0: there is none.
size_t citation_length(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  for (const std::string_view citation : kCitations)
    if (text.starts_with(citation)) return citation.size();
  size_t end = 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end < text.size() && text[end] == ']' ? end + 1 : 0;
}

void remove_citations(std::string_view line, std::string& out) {
  out.clear();
  while (!line.empty()) {
    const size_t at = std::min(line.find('['), line.size());
    out += line.substr(0, at);
    line.remove_prefix(at);
    const size_t citation = citation_length(line);
    if (citation == 0 && !line.empty()) out += line.substr(0, 1);
    line.remove_prefix(std::min(std::max<size_t>(citation, 1), line.size()));
  }
}

bool ends_a_sentence(std::string_view line) {
  if (line.empty() || line.ends_with("...")) return false;
  return std::string_view(".?!\"'").find(line.back()) != std::string_view::npos;
}

// Words between white space.
struct PlainWords {
  int64_t count = 0, longest = 0;  // characters
};

PlainWords plain_words(std::string_view line) {
  const CharMap& classes = word_classes();
  PlainWords out;
  int64_t chars = 0;
  for (size_t at = 0; at < line.size();) {
    const Utf8Char c = decode_valid_utf8(line.data() + at);
    at += static_cast<size_t>(c.length);
    if ((classes[c.code] & kSpaceChar) != 0) {
      chars = 0;
      continue;
    }
    out.count += chars == 0 ? 1 : 0;
    out.longest = std::max(out.longest, ++chars);
  }
  return out;
}

}  // namespace

std::string_view c4_verdict_name(C4Verdict verdict) {
  constexpr std::string_view kNames[] = {"kept", "lorem_ipsum", "curly_bracket", "few_sentences"};
  return kNames[static_cast<size_t>(verdict)];
}

bool contains_word(std::string_view text, std::string_view lower_case) {
  const size_t size = lower_case.size();
  if (text.size() < size) return false;
  const size_t end = text.size() - size + 1;
  const auto agrees = [&](size_t at, size_t i) { return (text[at + i] | 0x20) == (lower_case[i] | 0x20); };
  // Three characters reject nearly all positions.
  const auto may_begin = [&](size_t at) { return agrees(at, 0) & agrees(at, 1) & agrees(at, size - 1); };
  const auto same = [](char c, char wanted) { return ascii_lower(c) == wanted; };
  for (size_t at = 0; (at = find_position(at, end, may_begin)) < end; ++at) {
    const std::string_view found = text.substr(at, size);
    if (std::equal(found.begin(), found.end(), lower_case.begin(), same)) return true;
  }
  return false;
}

bool has_policy_phrase(std::string_view text) {
  const auto occurs = [&](std::string_view phrase) { return contains_word(text, phrase); };
  return std::any_of(std::begin(kPolicyPhrases), std::end(kPolicyPhrases), occurs) ||
         (occurs("cookie") && std::any_of(std::begin(kCookiePhrases), std::end(kCookiePhrases), occurs));
}

C4Verdict C4Lines::clean(std::string_view text, std::string& cleaned) {
  cleaned.clear();
  C4Verdict verdict = C4Verdict::kKept;
  int64_t sentences = 0;
  for_each_line(text, [&](std::string_view raw) {
    if (verdict != C4Verdict::kKept) return;
    const std::string_view line = strip(raw);
    const PlainWords words = plain_words(line);
    if (words.longest > options_.word_length) return;
    remove_citations(line, line_);
    if (options_.terminal_marks && !ends_a_sentence(line_)) return;
    if (words.count < options_.words) return;
    if (contains_word(line_, "lorem ipsum")) {
      verdict = C4Verdict::kLoremIpsum;
      return;
    }
    if (contains_word(line_, "javascript")) return;
    if (line_.find('{') != std::string::npos) {
      verdict = C4Verdict::kCurlyBracket;
      return;
    }
    if (has_policy_phrase(line_)) return;
    if (sentences < options_.sentences) sentences += sentences_of(line_);
    if (!cleaned.empty()) cleaned += '\n';
    cleaned += line_;
  });
  if (verdict == C4Verdict::kKept && sentences < options_.sentences) verdict = C4Verdict::kFewSentences;
  if (verdict == C4Verdict::kKept) cleaned = std::string(strip(cleaned));
  return verdict;
}

// As spaCy's sentencizer: a sentence begins after a mark that ends one and the punctuation that follows it.
int64_t C4Lines::sentences_of(std::string_view line) {
  splitter_.split(line, words_);
  int64_t count = words_.empty() ? 0 : 1;
  bool ended = false;
  for (const std::string_view word : words_) {
    const Utf8Char first = decode_valid_utf8(word.data());
    if (static_cast<size_t>(first.length) == word.size() && is_terminal_mark(first.code)) {
      ended = true;
      continue;
    }
    if (!ended) continue;
    bool punctuation = true;
    for (size_t at = 0; at < word.size() && punctuation;) {
      const Utf8Char c = decode_valid_utf8(word.data() + at);
      punctuation = is_punctuation(c.code);
      at += static_cast<size_t>(c.length);
    }
    if (punctuation) continue;
    ++count;
    ended = false;
  }
  return count;
}

}  // namespace tokamak
