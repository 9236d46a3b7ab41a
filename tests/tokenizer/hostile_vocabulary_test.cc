// Vocabularies whose keys were chosen to collide in the hash tables of a tokenizer. Without a defence each insertion
// would pass all earlier ones.
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string>

#include "base/error.h"
#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/piece_table.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/hf/vocab_table.h"

using namespace tokamak;

namespace {

constexpr uint64_t kPairFactor = 0x9E3779B97F4A7C15u;  // of PairTable's first hash
constexpr size_t kPairs = 4000;                        // in 8192 slots

// For each left id a right id so that the pair belongs into the slot 0, or into the slot `left`.
std::vector<BpeMerge> colliding_merges(bool one_slot_each) {
  std::vector<BpeMerge> merges;
  for (uint64_t left = 0; left < kPairs; ++left) {
    uint64_t right = 0;
    while ((left << PairTable::kIdBits | right) * kPairFactor >> (64 - 13) != (one_slot_each ? left : 0)) ++right;
    merges.push_back({static_cast<uint32_t>(left), static_cast<int32_t>(left), static_cast<int32_t>(right), 0});
  }
  return merges;
}

// Texts of 15 bytes with one hash: its first factor is 0.
std::string colliding_text(uint32_t i) {
  const uint64_t first = 0x2D358DCCAA6C78A5u;
  std::string text(PretokenKey::kLongest, 'x');
  std::memcpy(text.data(), &first, sizeof first);
  std::memcpy(text.data() + sizeof first, &i, sizeof i);
  return text;
}

}  // namespace

TEST_CASE("pairs that were chosen to collide get another hash") {
  std::array<uint32_t, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), 0);
  for (const bool one_slot_each : {false, true}) {
    const std::vector<BpeMerge> merges = colliding_merges(one_slot_each);
    const PairTable table(merges, bytes);
    CHECK(table.longest_run() <= PairTable::kLongestRun);
    for (const BpeMerge& merge : merges) {
      const auto left = static_cast<uint32_t>(merge.left), right = static_cast<uint32_t>(merge.right);
      if (table.rank(left, right) != merge.rank || table.rank(left + kPairs, right) != PairTable::kNoRank) FAIL(left);
    }
  }
}

TEST_CASE("pieces that were chosen to collide are refused") {
  PieceTable table(1000, 0);
  uint32_t taken = 0;
  while (taken < 1000 && table.add(colliding_text(taken), hash_text(colliding_text(taken)), 5)) ++taken;
  CHECK(taken == PieceTable::kLongestRun + 1);
  CHECK(table.find(colliding_text(taken - 1), 0) == 5);
  CHECK(table.find(colliding_text(taken), 0) == -1);

  ByteBpeModel model;
  model.whole_pieces = true;
  for (int byte = 0; byte < 256; ++byte) model.pieces.emplace_back(1, static_cast<char>(byte));
  for (uint32_t i = 0; i < 300; ++i) model.pieces.push_back(colliding_text(i));
  CHECK_THROWS_WITH(ByteBpe(model, "t.json"), Catch::Contains("t.json: more than 256 pieces were chosen to have the"));
}

TEST_CASE("each vocabulary table has a hash of its own") {
  const VocabTable one, other;
  int equal = 0;
  for (const char* piece : {"a", "bc", "defgh", "a long piece of text"}) equal += one.hash(piece) == other.hash(piece);
  CHECK(equal < 4);
}
