// A file that was recorded with block checksums: the first time this process touches a block it reads the whole block
// and checks it. Plain pread, so that a failing disk is an error with a name and not a SIGBUS. Safe for several
// threads.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "data/block_sums.h"
#include "data/file_pool.h"

namespace tokamak {

class CheckedFile {
 public:
  // `pool` must outlive the file. Nothing is opened yet.
  CheckedFile(std::string path, int64_t size, SumTable sums, FilePool& pool);

  // Error(kData), naming file and block, if the file is short or a block's checksum does not match (after reading it
  // a second time, for a disk that lies but once).
  void read_at(int64_t offset, std::span<std::byte> out) const;

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  int64_t blocks() const { return sums_.blocks(); }
  void check_block(int64_t block) const;  // whether or not it has been checked before

 private:
  bool matches(const InputFile& file, int64_t block, uint64_t& found) const;

  std::string path_;
  int64_t size_;
  SumTable sums_;
  FilePool& pool_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // (blocks); a race costs one check too many and nothing else
};

}  // namespace tokamak
