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

enum class NearlyGood { kCounts, kIsSkipped };

// For each paragraph the kind of the nearest one before it (by 1) or after it (by -1) that is neither short nor
// skipped.
std::vector<ParagraphKind> nearest(const std::vector<Paragraph>& all, int by, NearlyGood nearly_good) {
  std::vector<ParagraphKind> kinds(all.size());
  ParagraphKind last = ParagraphKind::kBad;
  for (size_t done = 0; done < all.size(); ++done) {
    const size_t i = by > 0 ? done : all.size() - 1 - done;
    kinds[i] = last;
    const ParagraphKind kind = all[i].kind;
    const bool is_skipped =
        kind == ParagraphKind::kBrief || (kind == ParagraphKind::kNearlyGood && nearly_good == NearlyGood::kIsSkipped);
    if (!is_skipped) last = kind;
  }
  return kinds;
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
  const auto good = [](ParagraphKind kind) { return kind == ParagraphKind::kGood; };
  std::vector<ParagraphKind> revised(all.size());
  auto before = nearest(all, 1, NearlyGood::kIsSkipped), after = nearest(all, -1, NearlyGood::kIsSkipped);
  const auto next_before = nearest(all, 1, NearlyGood::kCounts), next_after = nearest(all, -1, NearlyGood::kCounts);
  for (size_t i = 0; i < all.size(); ++i) {
    revised[i] = all[i].kind;
    if (all[i].kind != ParagraphKind::kBrief) continue;
    const ParagraphKind other_side = good(before[i]) ? next_after[i] : next_before[i];
    const bool is_good = (good(before[i]) && good(after[i])) ||
                         ((good(before[i]) || good(after[i])) && other_side == ParagraphKind::kNearlyGood);
    revised[i] = is_good ? ParagraphKind::kGood : ParagraphKind::kBad;
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].kind = revised[i];
  before = nearest(all, 1, NearlyGood::kIsSkipped), after = nearest(all, -1, NearlyGood::kIsSkipped);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == ParagraphKind::kNearlyGood)
      revised[i] = good(before[i]) || good(after[i]) ? ParagraphKind::kGood : ParagraphKind::kBad;
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!good(revised[i])) continue;
    if (!text.empty()) text += '\n';
    text += all[i].text;
  }
  return text;
}

}  // namespace tokamak
