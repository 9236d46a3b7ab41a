#include "tokenizer/bpe/byte_bpe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/bpe/byte_merge.h"
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
  for (const BpeMerge& merge : model.merges) {
    for (const int32_t id : {merge.left, merge.right, merge.result}) {
      if (id < 0 || id >= vocab) {
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

// Removes the merges that never happen. The bytes of a piece always merge in the same order, whatever surrounds them,
// so only one merge makes the piece. A tiktoken file gives every split of a piece the same rank: half of them go.
std::vector<BpeMerge> without_unused(const ByteBpeModel& model, const ByteMerger& merger) {
  std::vector<std::pair<uint32_t, uint32_t>> last(model.pieces.size());  // pair that merges into a piece
  for (size_t id = 0; id < last.size(); ++id) {
    const std::string& piece = model.pieces[id];
    uint32_t ids[ByteMerger::kShort];
    if (piece.size() > 1 && piece.size() <= ByteMerger::kShort && merger.merge_short(piece, ids, 2) == 2) {
      last[id] = {ids[0], ids[1]};
    }
  }
  std::vector<BpeMerge> used;
  for (const BpeMerge& merge : model.merges) {
    const auto result = static_cast<size_t>(merge.result);
    const std::pair<uint32_t, uint32_t> pair(merge.left, merge.right);
    if (model.pieces[result].size() > ByteMerger::kShort || last[result] == pair) used.push_back(merge);
  }
  return used;
}

WholePieces whole_pieces(const ByteBpeModel& model, ByteMerger merger) {
  std::vector<size_t> narrow, wide;  // ids
  std::vector<uint32_t> merged;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& piece = model.pieces[id];
    if (piece.empty()) continue;
    merged.resize(piece.size());
    const bool reachable = merger.merge(piece, merged.data()) == 1 && merged.front() == id;
    if (!reachable && !model.whole_pieces) continue;
    if (!is_wide(piece)) {
      narrow.push_back(id);
    } else if (!reachable) {
      wide.push_back(id);
    }
  }
  const auto table_of = [&](const std::vector<size_t>& ids) {
    const auto is_long = [&](size_t id) { return model.pieces[id].size() > PretokenKey::kLongest; };
    const auto long_ones = static_cast<size_t>(std::count_if(ids.begin(), ids.end(), is_long));
    PieceTable table(ids.size() - long_ones, long_ones);
    for (const size_t id : ids) table.add(model.pieces[id], hash_text(model.pieces[id]), static_cast<int32_t>(id));
    return table;
  };
  return {table_of(narrow), table_of(wide)};
}

}  // namespace

ByteBpe::ByteBpe(ByteBpeModel model, const std::string& source) {
  expect_valid(model, source);
  const std::array<uint32_t, 256> byte_ids = byte_ids_of(model, source);
  PairTable pairs(model.merges, byte_ids);
  pairs = PairTable(without_unused(model, ByteMerger(pairs, byte_ids)), byte_ids);
  WholePieces wholes = whole_pieces(model, ByteMerger(pairs, byte_ids));
  CutRule cuts;
  for (const uint32_t result : pairs.results()) cuts.add(model.pieces[result]);
  tables_ = std::make_unique<const ByteBpeTables>(
      ByteBpeTables{byte_ids, std::move(pairs), std::move(cuts), model.whole_pieces, std::move(wholes)});
}

ByteBpe::~ByteBpe() = default;

}  // namespace tokamak
