#include "tokenizer/bpe/piece_merges.h"

#include <algorithm>
#include <string_view>

#include "tokenizer/bpe/byte_merge.h"

namespace tokamak {

namespace {

// A piece that is being merged down to two symbols, as ByteMerger::merge_short does. Each step is in three parts. Other
// pieces take theirs in between, while memory answers.
class PieceLane {
 public:
  PieceLane(const PairTable& pairs, const std::array<uint32_t, 256>& byte_ids) : pairs_(pairs), byte_ids_(byte_ids) {}

  // `piece` has 2 to ByteMerger::kShort bytes.
  void start(size_t id, std::string_view piece) {
    id_ = id;
    size_ = static_cast<uint32_t>(piece.size());
    const auto byte = [&](uint32_t i) { return static_cast<uint8_t>(piece[i]); };
    for (uint32_t i = 0; i < size_; ++i) symbols_[i] = byte_ids_[byte(i)];
    for (uint32_t i = 0; i + 1 < size_; ++i) ranks_[i] = pairs_.rank_of_bytes(byte(i), byte(i + 1));
    busy_ = true;
  }
  bool busy() const { return busy_; }
  size_t id() const { return id_; }

  // False: the piece is done.
  bool choose() {
    at_ = static_cast<uint32_t>(std::min_element(ranks_, ranks_ + size_ - 1) - ranks_);
    if (ranks_[at_] != PairTable::kNoRank) pairs_.prefetch_result(ranks_[at_]);
    busy_ = size_ > 2 && ranks_[at_] != PairTable::kNoRank;
    return busy_;
  }

  void join() {
    symbols_[at_] = pairs_.result(ranks_[at_]);
    --size_;
    for (uint32_t i = at_ + 1; i < size_; ++i) symbols_[i] = symbols_[i + 1];
    for (uint32_t i = at_ + 1; i + 1 < size_; ++i) ranks_[i] = ranks_[i + 1];
    if (at_ > 0) pairs_.prefetch(symbols_[at_ - 1], symbols_[at_]);
    if (at_ + 1 < size_) pairs_.prefetch(symbols_[at_], symbols_[at_ + 1]);
  }

  void rank() {
    if (at_ > 0) ranks_[at_ - 1] = pairs_.rank(symbols_[at_ - 1], symbols_[at_]);
    if (at_ + 1 < size_) ranks_[at_] = pairs_.rank(symbols_[at_], symbols_[at_ + 1]);
  }

  PieceMerge merge() const {
    if (size_ != 2) return {};
    return {symbols_[0], symbols_[1], ranks_[0] != PairTable::kNoRank && pairs_.result(ranks_[0]) == id_};
  }

 private:
  const PairTable& pairs_;
  const std::array<uint32_t, 256>& byte_ids_;
  size_t id_ = 0;
  uint32_t size_ = 0;
  uint32_t at_ = 0;  // where the pair of the lowest rank begins
  bool busy_ = false;
  uint32_t symbols_[ByteMerger::kShort];
  uint32_t ranks_[ByteMerger::kShort];
};

}  // namespace

std::vector<PieceMerge> merge_pieces(const ByteBpeModel& model, const PairTable& pairs,
                                     const std::array<uint32_t, 256>& byte_ids) {
  constexpr size_t kLanes = 16;
  std::vector<PieceMerge> merges(model.pieces.size());
  ByteMerger merger(pairs, byte_ids);
  std::vector<uint32_t> merged;
  size_t next = 0;
  const auto start_next = [&](PieceLane& lane) {
    for (; next < merges.size(); ++next) {
      const std::string& piece = model.pieces[next];
      if (piece.size() == 1) merges[next].reachable = byte_ids[static_cast<uint8_t>(piece[0])] == next;
      if (piece.size() > ByteMerger::kShort) {
        merged.resize(piece.size());
        merges[next].reachable = merger.merge(piece, merged.data()) == 1 && merged.front() == next;
      } else if (piece.size() > 1) {
        return lane.start(next++, piece);
      }
    }
  };
  std::vector<PieceLane> lanes(kLanes, PieceLane(pairs, byte_ids));
  for (PieceLane& lane : lanes) start_next(lane);
  for (bool any = true; any;) {
    any = false;
    for (PieceLane& lane : lanes) {
      while (lane.busy() && !lane.choose()) {
        merges[lane.id()] = lane.merge();
        start_next(lane);
      }
      any = any || lane.busy();
    }
    for (PieceLane& lane : lanes) {
      if (lane.busy()) lane.join();
    }
    for (PieceLane& lane : lanes) {
      if (lane.busy()) lane.rank();
    }
  }
  return merges;
}

}  // namespace tokamak
