#include "tokenizer/bpe_rules.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/utf8.h"

namespace tokamak {

namespace {

// Only normal pieces result from merges: user-defined symbols are split off before.
bool merges(const Piece& piece) { return piece.type == PieceType::kNormal; }

std::vector<char32_t> characters(std::string_view text) {
  std::vector<char32_t> result;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_valid_utf8(text.data() + i);
    result.push_back(c.code);
    i += static_cast<size_t>(c.length);
  }
  return result;
}

// ranks[id]: the number of distinct higher scores among all pieces.
std::vector<uint32_t> ranks_of(const std::vector<Piece>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pieces[a].score > pieces[b].score; });
  std::vector<uint32_t> ranks(pieces.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && pieces[order[i]].score != pieces[order[i - 1]].score) ++rank;
    ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

BpeRules::BpeRules(const std::vector<Piece>& pieces) : vocab_size_(static_cast<int32_t>(pieces.size())) {
  number_characters(pieces);
  build_joins(pieces);
  build_merges(pieces);
}

void BpeRules::number_characters(const std::vector<Piece>& pieces) {
  int32_t next = vocab_size_;
  const auto place = [this](char32_t c) -> int32_t& {
    if (c >= symbols_.size()) symbols_.resize(c + 1, -1);
    return symbols_[c];
  };
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!merges(pieces[id])) continue;
    const std::vector<char32_t> chars = characters(pieces[id].text);
    if (chars.size() == 1) place(chars[0]) = static_cast<int32_t>(id);
  }
  for (const Piece& piece : pieces) {
    if (!merges(piece)) continue;
    for (const char32_t c : characters(piece.text)) {
      if (place(c) < 0) place(c) = next++;
    }
  }
}

void BpeRules::build_joins(const std::vector<Piece>& pieces) {
  std::vector<uint64_t> hashes;
  for (const Piece& piece : pieces) {
    if (!merges(piece)) continue;
    const std::vector<char32_t> chars = characters(piece.text);
    for (size_t i = 1; i < chars.size(); ++i) hashes.push_back(join_hash(chars[i - 1], chars[i]));
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  const uint64_t bits = std::bit_ceil(std::max<uint64_t>(16 * hashes.size(), 1024));
  join_shift_ = 64 - std::countr_zero(bits);
  joins_.assign(bits / 64, 0);
  for (const uint64_t hash : hashes) {
    const uint64_t bit = hash >> join_shift_;
    joins_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

void BpeRules::build_merges(const std::vector<Piece>& pieces) {
  std::unordered_map<std::string_view, int32_t> numbers;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (merges(pieces[id])) numbers.emplace(pieces[id].text, static_cast<int32_t>(id));
  }
  const auto number = [&](std::string_view text) {
    const Utf8Char first = decode_valid_utf8(text.data());
    if (first.length == std::ssize(text)) return symbol(first.code);
    const auto found = numbers.find(text);
    return found == numbers.end() ? -1 : found->second;
  };

  // A piece can result from any pair of symbols whose concatenation it is.
  const std::vector<uint32_t> ranks = ranks_of(pieces);
  std::vector<Slot> rules;
  for (const auto& [text, id] : numbers) {
    for (size_t cut = 0;;) {
      cut += static_cast<size_t>(decode_valid_utf8(text.data() + cut).length);
      if (cut >= text.size()) break;
      const int32_t left = number(text.substr(0, cut));
      const int32_t right = number(text.substr(cut));
      if (left >= 0 && right >= 0) rules.push_back({pair_key(left, right), {ranks[id], id}});
    }
  }
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(2 * rules.size(), 2));
  slot_shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, {});
  for (const Slot& rule : rules) {
    uint64_t i = rule.key * kGolden >> slot_shift_;
    while (slots_[i].key != kEmpty) i = (i + 1) & (size - 1);
    slots_[i] = rule;
  }
}

}  // namespace tokamak
