// A file with recorded block checksums. The first access of this process to a block reads and checks the whole block.
// Uses pread, so a failing disk is an error with a file name and not a SIGBUS. Thread-safe.
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

  // Error(kData), naming file and block, if the file is short or a block's checksum does not match. A mismatch is read
  // a second time first, in case the read error was transient.
  void read_at(int64_t offset, std::span<std::byte> out) const;

  // Host memory, in bytes, of a file of so many blocks.
  static int64_t memory_bytes(int64_t blocks) { return blocks * int64_t{sizeof(uint64_t) + sizeof(std::atomic<bool>)}; }

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  int64_t blocks() const { return sums_.blocks(); }
  void check_block(int64_t block) const;  // reads and checks the block again, even if it was checked before

 private:
  bool matches(const InputFile& file, int64_t block, uint64_t& found) const;

  std::string path_;
  int64_t size_;
  SumTable sums_;
  FilePool& pool_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // (blocks); a race only causes a redundant check
};

}  // namespace tokamak
