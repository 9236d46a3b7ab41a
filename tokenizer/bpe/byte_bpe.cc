#include "tokenizer/bpe/byte_bpe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/bpe/byte_merge.h"
#include "tokenizer/bpe/piece_merges.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/tables.h"

namespace tokamak {

namespace {

std::string shown(const ByteBpeModel& model, int32_t id) {
  return str(id, " (", printable(model.pieces[static_cast<size_t>(id)]), ")");
}

std::array<uint32_t, 256> byte_ids_of(const ByteBpeModel& model, const std::string& source) {
  constexpr uint32_t kMissing = std::numeric_limits<uint32_t>::max();
  std::array<uint32_t, 256> ids;
  ids.fill(kMissing);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& piece = model.pieces[id];
    if (piece.size() == 1) ids[static_cast<uint8_t>(piece[0])] = static_cast<uint32_t>(id);
  }
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    if (ids[byte] == kMissing) fail(Kind::kData, str(source, ": the byte ", byte, " is no piece of the vocabulary"));
  }
  return ids;
}

void expect_valid(const ByteBpeModel& model, const std::string& source) {
  const int64_t vocab = std::ssize(model.pieces);
  if (vocab > PairTable::kMostIds) {
    fail(Kind::kData, str(source, ": ", vocab, " ids; at most ", PairTable::kMostIds, " are supported"));
  }
  if (std::ssize(model.merges) > PairTable::kMostRanks) {
    fail(Kind::kData,
         str(source, ": ", model.merges.size(), " merges; at most ", PairTable::kMostRanks, " are supported"));
  }
  std::vector<std::pair<uint32_t, int32_t>> results;
  results.reserve(model.merges.size());
  const auto is_id = [&](int32_t id) { return id >= 0 && id < vocab; };
  constexpr size_t kAhead = 16;  // memory answers meanwhile
  for (size_t i = 0; i < model.merges.size(); ++i) {
    const BpeMerge& merge = model.merges[i];
    if (i + kAhead < model.merges.size()) {
      for (const int32_t id : {model.merges[i + kAhead].left, model.merges[i + kAhead].right}) {
        if (is_id(id)) __builtin_prefetch(&model.pieces[static_cast<size_t>(id)]);
      }
    }
    for (const int32_t id : {merge.left, merge.right, merge.result}) {
      if (!is_id(id)) {
        fail(Kind::kData, str(source, ": the merge of rank ", merge.rank, " has the id ", id,
                              ", which is not in the vocabulary of ", vocab));
      }
    }
    const std::string& left = model.pieces[static_cast<size_t>(merge.left)];
    const std::string& right = model.pieces[static_cast<size_t>(merge.right)];
    const std::string& result = model.pieces[static_cast<size_t>(merge.result)];
    if (left.empty() || right.empty() || result.size() != left.size() + right.size() || !result.starts_with(left) ||
        !result.ends_with(right)) {
      fail(Kind::kData, str(source, ": the merge of rank ", merge.rank, " makes ", shown(model, merge.result), " of ",
                            shown(model, merge.left), " and ", shown(model, merge.right)));
    }
    results.emplace_back(merge.rank, merge.result);
  }
  if (!std::is_sorted(results.begin(), results.end())) std::sort(results.begin(), results.end());
  for (size_t i = 1; i < results.size(); ++i) {
    if (results[i].first == results[i - 1].first && results[i].second != results[i - 1].second) {
      fail(Kind::kData, str(source, ": two merges of rank ", results[i].first, " have different results, ",
                            shown(model, results[i - 1].second), " and ", shown(model, results[i].second)));
    }
  }
}

// The merges that happen. The bytes of a piece always merge in the same order, whatever surrounds them, so only one
// merge makes the piece. A tiktoken file gives every split of a piece the same rank: half of them go.
std::vector<BpeMerge> used_merges(const ByteBpeModel& model, const std::vector<PieceMerge>& merged) {
  std::vector<BpeMerge> used;
  used.reserve(model.pieces.size());
  for (const BpeMerge& merge : model.merges) {
    const auto result = static_cast<size_t>(merge.result);
    const PieceMerge& made = merged[result];
    const bool is_last = std::pair(made.left, made.right) == std::pair<uint32_t, uint32_t>(merge.left, merge.right);
    if (is_last || model.pieces[result].size() > ByteMerger::kShort) used.push_back(merge);
  }
  return used;
}

PieceTable table_of(const std::vector<size_t>& ids, const ByteBpeModel& model, const std::string& source) {
  const auto is_long = [&](size_t id) { return model.pieces[id].size() > PretokenKey::kLongest; };
  const auto long_ones = static_cast<size_t>(std::count_if(ids.begin(), ids.end(), is_long));
  PieceTable table(ids.size() - long_ones, long_ones);
  constexpr size_t kBatch = 64;  // their slots are fetched at once
  std::array<uint64_t, kBatch> hashes;
  for (size_t begin = 0; begin < ids.size(); begin += kBatch) {
    const std::span<const size_t> batch = std::span(ids).subspan(begin, std::min(kBatch, ids.size() - begin));
    for (size_t i = 0; i < batch.size(); ++i) {
      hashes[i] = hash_text(model.pieces[batch[i]]);
      table.prefetch(model.pieces[batch[i]].size(), hashes[i]);
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto id = static_cast<int32_t>(batch[i]);
      if (table.add(model.pieces[batch[i]], hashes[i], id)) continue;
      fail(Kind::kData, str(source, ": more than ", PieceTable::kLongestRun,
                            " pieces were chosen to have the same hash as ", shown(model, id)));
    }
  }
  return table;
}

WholePieces whole_pieces(const ByteBpeModel& model, const std::vector<PieceMerge>& merged, const std::string& source) {
  std::vector<size_t> narrow, wide;  // ids
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& piece = model.pieces[id];
    const bool reachable = merged[id].reachable;
    if (piece.empty() || !(reachable || model.whole_pieces)) continue;
    if (!is_wide(piece)) {
      narrow.push_back(id);
    } else if (!reachable) {
      wide.push_back(id);
    }
  }
  return {table_of(narrow, model, source), table_of(wide, model, source)};
}

}  // namespace

ByteBpe::ByteBpe(ByteBpeModel model, const std::string& source) {
  expect_valid(model, source);
  const std::array<uint32_t, 256> byte_ids = byte_ids_of(model, source);
  PairTable pairs(model.merges, byte_ids);
  const std::vector<PieceMerge> merged = merge_pieces(model, pairs, byte_ids);
  pairs = PairTable(used_merges(model, merged), byte_ids);
  WholePieces wholes = whole_pieces(model, merged, source);
  CutRule cuts;
  for (const uint32_t result : pairs.results()) cuts.add(model.pieces[result]);
  tables_ = std::make_unique<const ByteBpeTables>(
      ByteBpeTables{byte_ids, std::move(pairs), std::move(cuts), model.whole_pieces, std::move(wholes)});
}

ByteBpe::~ByteBpe() = default;

}  // namespace tokamak
