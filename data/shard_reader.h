// Reads one shard of a manifest: tokens by position, and document boundaries. Files are opened on first access, and
// every block is checked against its recorded checksum on first access. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/checked_file.h"
#include "data/index_format.h"
#include "data/shard_writer.h"

namespace tokamak {

class Shard {
 public:
  // `pool` must outlive the shard. Error(kData) if one of the three files is missing or does not have the recorded
  // size.
  Shard(const std::string& directory, const ShardInfo& info, TokenType type, FilePool& pool);

  int64_t tokens() const { return info_.tokens; }
  const ShardInfo& info() const { return info_; }

  // Tokens [first, first + out.size()) of the shard. Error(kData) for an id outside [0, vocab_size).
  void read(int64_t first, int64_t vocab_size, std::span<int32_t> out) const;

  // Appends base + (p - first) for each position p in [first, first + count) at which a document begins, in ascending
  // order. A position where several (empty) documents begin counts once.
  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const;

  // Reads the whole index. Error(kData) unless lengths and pointers tile the .bin without gap or overlap, and each
  // document is one sequence.
  void check_index() const;

  const CheckedFile& bin() const { return files().bin; }
  const CheckedFile& idx() const { return files().idx; }

 private:
  struct Files {
    CheckedFile bin;
    CheckedFile idx;
    IndexHeader header;
  };
  const Files& files() const;  // opens on first use
  void read_pointers(int64_t first, std::span<int64_t> out) const;

  std::string prefix_;
  ShardInfo info_;
  TokenType type_;
  FilePool& pool_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Files> files_;
};

}  // namespace tokamak
