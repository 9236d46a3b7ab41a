// A store in our own format. The first access opens its files, and the first access to a block checks its checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/checked_file.h"
#include "data/index_format.h"
#include "data/token_store.h"

namespace tokamak {

class Shard final : public TokenStore {
 public:
  // `pool` must outlive the shard. Error(kData) if one of the three files is missing or does not have the recorded
  // size.
  Shard(const std::string& directory, const ShardInfo& info, TokenType type, FilePool& pool);

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override;
  void for_each_part(const std::function<void(const DocumentPart&)>& visit) const override;
  void sequence_lengths(int64_t first, std::span<int32_t> out) const override;
  int64_t memory_bytes() const override { return CheckedFile::memory_bytes(blocks_); }

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
  void read_ids(int64_t first, std::span<int32_t> out) const override;
  const Files& files() const;  // opens on first use
  void read_pointers(int64_t first, std::span<int64_t> out) const;

  std::string prefix_;
  TokenType type_;
  FilePool& pool_;
  int64_t blocks_ = 0;  // of both files, by the size of their checksums
  mutable std::once_flag once_;
  mutable std::unique_ptr<Files> files_;
};

}  // namespace tokamak
