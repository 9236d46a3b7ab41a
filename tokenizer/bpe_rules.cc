#include "tokenizer/bpe_rules.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/symbol_merge.h"
#include "tokenizer/normalize.h"

namespace tokamak {

namespace {

constexpr char32_t kSpaceCharacter = 0x2581;

// Only normal pieces result from merges: user-defined symbols are split off before. No text has a piece with a space,
// which stands for U+2581.
bool may_result(const Piece& piece) {
  return piece.type == PieceType::kNormal && piece.text.find(' ') == std::string::npos;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const auto length = static_cast<size_t>(decode_valid_utf8(text.data()).length);
    result.push_back(text.substr(0, length));
    text.remove_prefix(length);
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

std::string with_raw_spaces(std::string_view piece) {
  std::string text;
  for (const std::string_view c : characters_of(piece)) text += c == kSpaceSymbol ? " " : c;
  return text;
}

// For texts with spaces, and for texts with U+2581.
CutScanner scanner_of(const std::vector<Piece>& pieces) {
  std::vector<std::string> spellings;
  for (const Piece& piece : pieces) {
    if (!may_result(piece)) continue;
    spellings.push_back(piece.text);
    spellings.push_back(with_raw_spaces(piece.text));
  }
  return CutScanner(std::vector<std::string_view>(spellings.begin(), spellings.end()));
}

}  // namespace

BpeRules::BpeRules(const std::vector<Piece>& pieces, const std::string& source)
    : vocab_size_(static_cast<uint32_t>(pieces.size())), pairs_({}, {}), pieces_(0, 0), scanner_(scanner_of(pieces)) {
  number_characters(pieces);
  const int64_t symbols = std::ssize(pieces) + std::ssize(characters_);
  if (symbols >= PairTable::kMostIds) {
    fail(Kind::kData,
         str(source, ": ", symbols, " pieces and characters; at most ", PairTable::kMostIds - 1, " are supported"));
  }
  build_pairs(pieces);
  build_pieces(pieces);
}

void BpeRules::number_characters(const std::vector<Piece>& pieces) {
  const auto place = [this](char32_t c) -> uint32_t& {
    if (c >= symbols_.size()) symbols_.resize(c + 1, kNoSymbol);
    return symbols_[c];
  };
  for (size_t id = 0; id < pieces.size(); ++id) {
    const Utf8Char first = decode_valid_utf8(pieces[id].text.data());
    if (may_result(pieces[id]) && first.length == std::ssize(pieces[id].text))
      place(first.code) = static_cast<uint32_t>(id);
  }
  for (const Piece& piece : pieces) {
    if (!may_result(piece)) continue;
    for (const std::string_view c : characters_of(piece.text)) {
      uint32_t& number = place(decode_valid_utf8(c.data()).code);
      if (number != kNoSymbol) continue;
      number = vocab_size_ + static_cast<uint32_t>(characters_.size());
      characters_.emplace_back(c);
    }
  }
  place(' ') = symbol(kSpaceCharacter);
}

std::vector<uint32_t> BpeRules::symbols_of(std::string_view text) const {
  std::vector<uint32_t> symbols;
  for (const std::string_view c : characters_of(text)) symbols.push_back(symbol(decode_valid_utf8(c.data()).code));
  return symbols;
}

// A piece can result from any pair of symbols whose concatenation it is. Ranks are left open.
std::vector<BpeMerge> BpeRules::merges_of(const std::vector<Piece>& pieces) const {
  std::unordered_map<std::string_view, uint32_t> numbers;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (may_result(pieces[id])) numbers.emplace(pieces[id].text, static_cast<uint32_t>(id));
  }
  const auto number = [&](std::string_view text) {
    const Utf8Char first = decode_valid_utf8(text.data());
    if (first.length == std::ssize(text)) return symbol(first.code);
    const auto found = numbers.find(text);
    return found == numbers.end() ? kNoSymbol : found->second;
  };
  std::vector<BpeMerge> merges;
  for (const auto& [text, id] : numbers) {
    for (size_t cut = 0;;) {
      cut += static_cast<size_t>(decode_valid_utf8(text.data() + cut).length);
      if (cut >= text.size()) break;
      const uint32_t left = number(text.substr(0, cut));
      const uint32_t right = number(text.substr(cut));
      if (left == kNoSymbol || right == kNoSymbol) continue;
      merges.push_back({0, static_cast<int32_t>(left), static_cast<int32_t>(right), static_cast<int32_t>(id)});
    }
  }
  return merges;
}

// A piece's characters merge in the same order wherever they stand, so one merge of two parts makes it, and the others
// can go. Small tables are fast.
std::vector<BpeMerge> BpeRules::without_unused(const std::vector<BpeMerge>& merges,
                                               const std::vector<Piece>& pieces) const {
  std::vector<std::pair<uint32_t, uint32_t>> last(pieces.size());  // pair that merges into a piece
  std::vector<bool> is_long(pieces.size());
  const SymbolMerger merger(pairs_, last_equals_);
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!may_result(pieces[id])) continue;
    std::vector<uint32_t> symbols = symbols_of(pieces[id].text);
    is_long[id] = symbols.size() > SymbolMerger::kShort;
    if (is_long[id] || symbols.size() < 2) continue;
    merger.merge_short(symbols, 2);
    if (symbols.size() == 2) last[id] = {symbols[0], symbols[1]};
  }
  std::vector<BpeMerge> used;
  for (const BpeMerge& merge : merges) {
    const std::pair<uint32_t, uint32_t> pair(merge.left, merge.right);
    const auto result = static_cast<size_t>(merge.result);
    if (is_long[result] || last[result] == pair) used.push_back(merge);
  }
  return used;
}

void BpeRules::build_pairs(const std::vector<Piece>& pieces) {
  std::vector<BpeMerge> merges = merges_of(pieces);
  const std::vector<uint32_t> ranks = ranks_of(pieces);
  // PairTable wants one result for each rank, and the places of pieces in the order of their ranks are such ranks.
  std::vector<uint32_t> ids(pieces.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return ranks[a] < ranks[b]; });
  std::vector<uint32_t> places(pieces.size());
  for (uint32_t i = 0; i < ids.size(); ++i) places[ids[i]] = i;
  for (BpeMerge& merge : merges) merge.rank = places[static_cast<size_t>(merge.result)];

  std::array<uint32_t, 256> bytes;  // the upper half are no characters, and the number that they have is no symbol
  bytes.fill(vocab_size_ + static_cast<uint32_t>(characters_.size()));
  for (char32_t c = 0; c < 0x80; ++c) {
    if (symbol(c) != kNoSymbol) bytes[c] = symbol(c);
  }
  const auto compile = [&] {
    pairs_ = PairTable(merges, bytes, PairTable::Numbers::kFromZero);
    const std::span<const uint32_t> results = pairs_.results();
    last_equals_.resize(results.size());
    for (size_t i = results.size(); i-- > 0;) {
      const bool tied = i + 1 < results.size() && ranks[results[i]] == ranks[results[i + 1]];
      last_equals_[i] = tied ? last_equals_[i + 1] : static_cast<uint32_t>(i);
    }
  };
  compile();
  merges = without_unused(merges, pieces);
  compile();
}

void BpeRules::build_pieces(const std::vector<Piece>& pieces) {
  SymbolMerger merger(pairs_, last_equals_);
  struct Reachable {
    std::string text;
    int32_t id;
  };
  std::vector<Reachable> reachable;
  size_t long_ones = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!may_result(pieces[id])) continue;
    std::vector<uint32_t> symbols = symbols_of(pieces[id].text);
    merger.merge(symbols);
    if (symbols.size() != 1 || symbols[0] != id) continue;
    reachable.push_back({with_raw_spaces(pieces[id].text), static_cast<int32_t>(id)});
    long_ones += reachable.back().text.size() > PretokenKey::kLongest ? 1 : 0;
  }
  pieces_ = PieceTable(reachable.size() - long_ones, long_ones);
  for (const Reachable& piece : reachable) pieces_.add(piece.text, hash_text(piece.text), piece.id);
}

}  // namespace tokamak
