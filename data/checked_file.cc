#include "data/checked_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

CheckedFile::CheckedFile(std::string path, int64_t size, SumTable sums, FilePool& pool)
    : path_(std::move(path)),
      size_(size),
      sums_(std::move(sums)),
      pool_(pool),
      checked_(std::make_unique<std::atomic<bool>[]>(sums_.sums.size())) {}

void CheckedFile::read_at(int64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  const int64_t end = offset + std::ssize(out);
  TOKAMAK_CHECK(offset >= 0 && end <= size_, path_, ": bytes ", offset, " to ", end, " of ", size_);
  for (int64_t block = offset / sums_.block_bytes; block * sums_.block_bytes < end; ++block) {
    const auto i = static_cast<size_t>(block);
    if (!checked_[i].load(std::memory_order_relaxed)) check_block(block);
    checked_[i].store(true, std::memory_order_relaxed);
  }
  pool_.open(path_).file().read_at(offset, out);
}

void CheckedFile::check_block(int64_t block) const {
  const FilePool::Lease lease = pool_.open(path_);
  uint64_t found = 0;
  if (matches(lease.file(), block, found)) return;
  log::warning("block ", block, " of ", path_, " does not match its checksum; reading it again");
  if (matches(lease.file(), block, found)) return;
  const int64_t begin = block * sums_.block_bytes;
  fail(Kind::kData,
       str("block ", block, " of ", path_, " (bytes ", begin, " to ", std::min(begin + sums_.block_bytes, size_),
           ") is damaged: checksum ", hex64(found), ", recorded ", hex64(sums_.sums[block])),
       "restore the file from its source; `tokamak data verify` lists every damaged block of a data set");
}

bool CheckedFile::matches(const InputFile& file, int64_t block, uint64_t& found) const {
  const int64_t begin = block * sums_.block_bytes;
  const auto bytes = static_cast<size_t>(std::min(sums_.block_bytes, size_ - begin));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const std::span<std::byte> view(buffer.get(), bytes);
  file.read_at(begin, view);
  found = xxh3_64(view);
  return found == sums_.sums[block];
}

}  // namespace tokamak
