// A table of rows for data.packing: best_fit: which pieces of documents each row of T positions holds. It is made once
// (pack_dataset) for a data set and a length, so that sample k stays a pure function of k.
//
//   table  := piece[P] row[R + 1] sum[K] footer            little-endian, without padding
//   piece  := u64 first token, u32 positions               12 bytes; the token after the last position is its target
//   row    := u64 number of its first piece                row[0] = 0, row[R] = P
//   sum    := u64 xxh3_64 of each 64 KiB of the pieces and rows; the last block may be short
//   footer := "TOKPACK1" u64 T, R, P, positions of all rows; 32 bytes data set (Manifest::id()); u64 xxh3_64 of all
//             sums and the footer before this number
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/checked_file.h"
#include "data/dataset.h"
#include "data/order/source_order.h"
#include "data/order/window_order.h"

namespace tokamak {

// DIR/pack-T.tbl, or PREFIX.pack-T.tbl if the data set is no directory.
std::string pack_table_path(const std::string& directory, int64_t length);

struct PackReport {
  int64_t rows = 0;
  int64_t pieces = 0;
  int64_t positions = 0;  // of R T
};

// Writes the table of a data set, atomically. A document of n tokens has n - 1 positions, each with the next token as
// its target; its EOS is only a target. A longer document is cut into pieces of T and a rest. Documents are packed in
// blocks of 2^20, so memory does not grow with the data set. `progress` gets tokens done.
PackReport pack_dataset(const Dataset& data, int64_t length, const std::function<void(int64_t)>& progress);

class PackTable {
 public:
  // Error(kData) if the table is missing, damaged, or of other data. `pool` must outlive the table.
  PackTable(const Dataset& data, int64_t length, FilePool& pool);

  int64_t rows() const { return report_.rows; }
  const PackReport& report() const { return report_; }
  int64_t memory_bytes() const { return CheckedFile::memory_bytes(file_->blocks()); }
  const std::string& hash() const { return hash_; }  // equal tables have equal hashes

  // The tokens of row r: each piece's positions and one token more.
  void row(int64_t r, std::vector<TokenRange>& out) const;

 private:
  int64_t length_;
  int64_t tokens_;  // of the data set
  PackReport report_;
  std::string hash_;
  std::unique_ptr<CheckedFile> file_;
};

// Rows of a table as samples, shuffled as windows are.
class PackedOrder final : public SourceOrder {
 public:
  PackedOrder(PackTable table, EpochShuffle shuffle) : table_(std::move(table)), shuffle_(shuffle) {}

  RangeKind kind() const override { return RangeKind::kRows; }
  int64_t epoch() const override { return table_.rows(); }
  int64_t memory_bytes() const override { return table_.memory_bytes(); }
  void ranges(int64_t j, std::vector<TokenRange>& out) const override {
    table_.row(shuffle_(j % epoch(), j / epoch(), epoch()), out);
  }

 private:
  PackTable table_;
  EpochShuffle shuffle_;
};

}  // namespace tokamak
