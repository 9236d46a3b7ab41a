#include "random_bpe.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tokamak {

namespace {

const std::vector<std::string> kBpeLetters = {"a", "b", "c", "1", " ", "é", "ж", "中", "文", "，", "😀", "😁"};

std::string random_letters(std::mt19937_64& random, uint64_t length) {
  std::string text;
  for (; length > 0; --length) text += kBpeLetters[random() % kBpeLetters.size()];
  return text;
}

}  // namespace

ByteBpeModel random_bpe_model(std::mt19937_64& random) {
  ByteBpeModel model;
  model.whole_pieces = random() % 2 == 0;
  std::vector<std::string> pieces;
  std::map<std::string, int32_t> ids;
  const auto id_of = [&](const std::string& piece) {
    const auto [found, added] = ids.emplace(piece, static_cast<int32_t>(pieces.size()));
    if (added) pieces.push_back(piece);
    return found->second;
  };
  for (int byte = 0; byte < 256; ++byte) id_of(std::string(1, static_cast<char>(byte)));
  // A merge joins two neighbours of a random text, so that many merges apply to other random texts.
  std::set<std::pair<int32_t, int32_t>> seen;
  for (uint64_t n = random() % 120; n > 0; --n) {
    const std::string text = random_letters(random, 4);
    const uint64_t left = 1 + random() % (random() % 2 == 0 ? 3 : 6);
    const uint64_t right = 1 + random() % (random() % 2 == 0 ? 3 : 6);
    if (left + right > text.size()) continue;
    const uint64_t begin = random() % (text.size() - left - right + 1);
    const std::string a = text.substr(begin, left);
    const std::string b = text.substr(begin + left, right);
    for (const std::string& part : {a, b}) {  // parts that no merge makes are unreachable
      if (random() % 3 == 0 || ids.contains(part)) continue;
      const size_t cut = 1 + random() % std::max<size_t>(1, part.size() - 1);
      if (!ids.contains(part.substr(0, cut)) || !ids.contains(part.substr(cut))) continue;
      const std::pair<int32_t, int32_t> pair = {id_of(part.substr(0, cut)), id_of(part.substr(cut))};
      if (seen.insert(pair).second) model.merges.push_back({0, pair.first, pair.second, id_of(part)});
    }
    const std::pair<int32_t, int32_t> pair = {id_of(a), id_of(b)};
    if (seen.insert(pair).second) model.merges.push_back({0, pair.first, pair.second, id_of(a + b)});
  }
  for (uint64_t n = random() % 20; n > 0; --n) id_of(random_letters(random, 1 + random() % 6));

  std::vector<int32_t> order(pieces.size() + random() % 3);  // some ids have no piece
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  model.pieces.resize(order.size());
  for (size_t i = 0; i < pieces.size(); ++i) model.pieces[static_cast<size_t>(order[i])] = pieces[i];
  const bool rank_of_result = random() % 2 == 0;
  const uint32_t spread = 1 + random() % 50;
  std::shuffle(model.merges.begin(), model.merges.end(), random);
  for (size_t i = 0; i < model.merges.size(); ++i) {
    BpeMerge& merge = model.merges[i];
    merge = {0, order[static_cast<size_t>(merge.left)], order[static_cast<size_t>(merge.right)],
             order[static_cast<size_t>(merge.result)]};
    merge.rank = spread * static_cast<uint32_t>(rank_of_result ? merge.result : static_cast<int32_t>(i));
  }
  return model;
}

std::string random_bpe_text(std::mt19937_64& random, uint64_t length) {
  std::string text;
  while (length > 0) {
    const uint64_t run = std::min<uint64_t>(length, 1 + random() % 12);
    if (random() % 20 == 0) {
      const std::string letter = kBpeLetters[random() % kBpeLetters.size()];
      for (uint64_t i = 0; i < run; ++i) text += letter;
    } else {
      text += random_letters(random, run);
    }
    if (random() % 30 == 0) text += static_cast<char>(random() % 128);
    length -= run;
  }
  return text;
}

NaiveBpe::NaiveBpe(const ByteBpeModel& model) : whole_pieces_(model.whole_pieces) {
  for (size_t id = 0; id < model.pieces.size(); ++id) ids_.emplace(model.pieces[id], static_cast<int32_t>(id));
  for (const BpeMerge& merge : model.merges) merges_[{merge.left, merge.right}] = merge;
}

std::vector<int32_t> NaiveBpe::merge(std::string_view pretoken) const {
  if (whole_pieces_ && !pretoken.empty()) {
    const auto whole = ids_.find(pretoken);
    if (whole != ids_.end()) return {whole->second};
  }
  std::vector<int32_t> ids;
  for (const char byte : pretoken) ids.push_back(ids_.find(std::string_view(&byte, 1))->second);
  constexpr uint32_t kNone = UINT32_MAX;
  const auto rank_at = [&](size_t i) {
    const auto merge = merges_.find({ids[i], ids[i + 1]});
    return merge == merges_.end() ? kNone : merge->second.rank;
  };
  std::vector<uint32_t> ranks;  // of each pair of neighbours
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks.push_back(rank_at(i));
  for (;;) {
    const auto best = std::min_element(ranks.begin(), ranks.end());  // the leftmost of equals
    if (best == ranks.end() || *best == kNone) return ids;
    const auto at = static_cast<size_t>(best - ranks.begin());
    ids[at] = merges_.at({ids[at], ids[at + 1]}).result;
    ids.erase(ids.begin() + static_cast<int64_t>(at) + 1);
    ranks.erase(best);
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
    if (at < ranks.size()) ranks[at] = rank_at(at);
  }
}

size_t SpaceScanner::scan(std::string_view text, size_t at, std::span<uint32_t> ends) const {
  size_t count = 0;
  while (at < text.size() && count < ends.size()) {
    at = std::min(text.find(' ', at + 1), text.size());
    ends[count++] = static_cast<uint32_t>(at);
  }
  return count;
}

std::vector<int32_t> NaiveBpe::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();) {
    uint32_t end = 0;
    SpaceScanner().scan(text, at, {&end, 1});
    const std::vector<int32_t> merged = merge(text.substr(at, end - at));
    ids.insert(ids.end(), merged.begin(), merged.end());
    at = end;
  }
  return ids;
}

}  // namespace tokamak
