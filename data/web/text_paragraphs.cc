#include "data/web/text_paragraphs.h"

#include <utility>
#include <vector>

#include "data/rules/text_lines.h"
#include "data/web/page_text.h"

namespace tokamak {

namespace {

constexpr int64_t kShort = 50, kLong = 150;  // characters
constexpr double kMostLinks = 0.25;          // share of the characters
constexpr size_t kHeadingReach = 150;        // characters between a heading and the text that it heads

enum class ParagraphKind { kBad, kBrief, kNearlyGood, kGood };

struct Paragraph {
  std::string text;
  int64_t chars = 0, link_chars = 0;
  bool is_heading = false;
  ParagraphKind kind = ParagraphKind::kBad;
};

std::vector<Paragraph> paragraphs_of(const PageTree& tree) {
  std::vector<Paragraph> out;
  TextBuilder builder;
  int links = 0, headings = 0;
  int64_t link_chars = 0;
  bool begins_in_heading = false;
  const auto end_paragraph = [&] {
    Paragraph paragraph;
    paragraph.text = builder.take();
    paragraph.chars = count_chars(paragraph.text);
    paragraph.link_chars = std::exchange(link_chars, 0);
    paragraph.is_heading = begins_in_heading;
    if (!paragraph.text.empty()) out.push_back(std::move(paragraph));
    begins_in_heading = headings > 0;
  };
  const auto border = [&](NodeIndex node, int by) {
    const std::string_view tag = tree[node].tag;
    if (tag == "a") links += by;
    if (is_heading(tag)) headings += by;
    if (tag == "br")
      builder.add(" ");
    else if (is_block(tag))
      end_paragraph();
  };
  walk(
      tree, tree.root(),
      [&](NodeIndex node) {
        border(node, 1);
        builder.add(tree[node].text);
        if (links > 0) link_chars += count_chars(strip(tree[node].text));
        return true;
      },
      [&](NodeIndex node) { border(node, -1); });
  end_paragraph();
  return out;
}

ParagraphKind kind_alone(const Paragraph& paragraph) {
  if (double(paragraph.link_chars) > kMostLinks * double(paragraph.chars)) return ParagraphKind::kBad;
  if (paragraph.text.find("\u00a9") != std::string::npos) return ParagraphKind::kBad;
  if (paragraph.chars < kShort) return paragraph.link_chars > 0 ? ParagraphKind::kBad : ParagraphKind::kBrief;
  return paragraph.chars > kLong ? ParagraphKind::kGood : ParagraphKind::kNearlyGood;
}

// The kind of the nearest paragraph, from `at` in steps of `by`, that is neither short nor, if so asked, nearly good.
ParagraphKind neighbour(const std::vector<Paragraph>& all, size_t at, int by, bool skip_nearly_good) {
  for (auto i = static_cast<int64_t>(at) + by; i >= 0 && i < std::ssize(all); i += by) {
    const ParagraphKind kind = all[static_cast<size_t>(i)].kind;
    if (kind == ParagraphKind::kBad || kind == ParagraphKind::kGood) return kind;
    if (kind == ParagraphKind::kNearlyGood && !skip_nearly_good) return kind;
  }
  return ParagraphKind::kBad;
}

}  // namespace

std::string text_paragraphs(const PageTree& tree) {
  std::vector<Paragraph> all = paragraphs_of(tree);
  for (Paragraph& paragraph : all) paragraph.kind = kind_alone(paragraph);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_heading || all[i].kind != ParagraphKind::kBrief) continue;
    size_t distance = 0;
    for (size_t j = i + 1; j < all.size() && distance <= kHeadingReach; distance += all[j++].text.size())
      if (all[j].kind == ParagraphKind::kGood) {
        all[i].kind = ParagraphKind::kNearlyGood;
        break;
      }
  }
  std::vector<ParagraphKind> revised(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    revised[i] = all[i].kind;
    if (all[i].kind != ParagraphKind::kBrief) continue;
    const ParagraphKind before = neighbour(all, i, -1, true), after = neighbour(all, i, 1, true);
    const bool both = before == ParagraphKind::kGood && after == ParagraphKind::kGood;
    const bool either = before == ParagraphKind::kGood || after == ParagraphKind::kGood;
    const bool nearly = neighbour(all, i, before == ParagraphKind::kGood ? 1 : -1, false) == ParagraphKind::kNearlyGood;
    revised[i] = both || (either && nearly) ? ParagraphKind::kGood : ParagraphKind::kBad;
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].kind = revised[i];
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind != ParagraphKind::kNearlyGood) continue;
    const bool good =
        neighbour(all, i, -1, true) == ParagraphKind::kGood || neighbour(all, i, 1, true) == ParagraphKind::kGood;
    revised[i] = good ? ParagraphKind::kGood : ParagraphKind::kBad;
  }
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (revised[i] != ParagraphKind::kGood) continue;
    if (!text.empty()) text += '\n';
    text += all[i].text;
  }
  return text;
}

}  // namespace tokamak
