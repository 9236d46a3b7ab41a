#include "data/order/best_fit.h"

#include "base/error.h"

namespace tokamak {

namespace {

// Counting sort, the longest first.
std::vector<TokenRange> longest_first(std::span<const TokenRange> pieces, int64_t length) {
  std::vector<int64_t> begin(length + 2,
                             0);  // [T - count + 1]: how many pieces are at least as long, then where they go
  for (const TokenRange& piece : pieces) {
    TOKAMAK_CHECK(piece.count > 0 && piece.count <= length, "a piece of ", piece.count, " in rows of ", length);
    ++begin[length - piece.count + 1];
  }
  for (int64_t i = 1; i < std::ssize(begin); ++i) begin[i] += begin[i - 1];
  std::vector<TokenRange> sorted(pieces.size());
  for (const TokenRange& piece : pieces) sorted[begin[length - piece.count]++] = piece;
  return sorted;
}

}  // namespace

BestFit::BestFit(int64_t length) : length_(length), rooms_(length), by_room_(length, -1) {
  TOKAMAK_CHECK(length > 0, length);
}

void BestFit::put_aside(int64_t row) {
  const int64_t room = rows_[row].room;
  if (room == 0) return;
  rows_[row].below = by_room_[room];
  by_room_[room] = row;
  rooms_.insert(room);
}

void BestFit::pack(std::span<const TokenRange> pieces, const Emit& emit) {
  const std::vector<TokenRange> sorted = longest_first(pieces, length_);
  rows_.clear();
  next_.assign(sorted.size(), -1);
  for (int64_t piece = 0; piece < std::ssize(sorted); ++piece) {
    const int64_t room = rooms_.first_from(sorted[piece].count);
    int64_t row = std::ssize(rows_);
    if (room < 0) {
      rows_.push_back({.room = length_, .first = piece});
    } else {
      row = by_room_[room];
      by_room_[room] = rows_[row].below;
      if (by_room_[room] < 0) rooms_.erase(room);
      next_[rows_[row].last] = piece;
    }
    rows_[row].last = piece;
    rows_[row].room -= sorted[piece].count;
    put_aside(row);
  }
  std::vector<TokenRange> out;
  for (const Row& row : rows_) {
    out.clear();
    for (int64_t piece = row.first; piece >= 0; piece = next_[piece]) out.push_back(sorted[piece]);
    emit(out);
    if (row.room == 0) continue;
    by_room_[row.room] = -1;  // for the next call
    rooms_.erase(row.room);
  }
}

}  // namespace tokamak
