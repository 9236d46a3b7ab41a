#include "data/block_sums.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr char kSumsMagic[] = "LLMSUM1";  // with the terminating zero, 8 bytes

void put(std::vector<std::byte>& out, uint64_t value) {
  const size_t at = out.size();
  out.resize(at + 8);
  std::memcpy(out.data() + at, &value, 8);
}

void put_table(std::vector<std::byte>& out, const SumTable& table) {
  put(out, static_cast<uint64_t>(table.block_bytes));
  put(out, static_cast<uint64_t>(table.blocks()));
  for (const uint64_t sum : table.sums) put(out, sum);
}

// Reads consecutive u64 from a buffer that may be too short.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  uint64_t next() {
    if (bytes_.size() < 8) fail(Kind::kData, str(path_, " is damaged: its tables are cut short"));
    uint64_t value;
    std::memcpy(&value, bytes_.data(), 8);
    bytes_ = bytes_.subspan(8);
    return value;
  }
  SumTable table(int64_t file_bytes) {
    SumTable table;
    const uint64_t block_bytes = next();
    const uint64_t blocks = next();
    if (block_bytes == 0 || block_bytes > (uint64_t{1} << 30)) {
      fail(Kind::kData, str(path_, " is damaged: blocks of ", block_bytes, " bytes"));
    }
    table.block_bytes = static_cast<int64_t>(block_bytes);
    const int64_t expected = (file_bytes + table.block_bytes - 1) / table.block_bytes;
    if (blocks != static_cast<uint64_t>(expected)) {
      fail(Kind::kData, str(path_, " has checksums of ", blocks, " blocks of ", block_bytes, " bytes; its file of ",
                            file_bytes, " bytes has ", expected));
    }
    for (uint64_t i = 0; i < blocks; ++i) table.sums.push_back(next());
    return table;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

}  // namespace

BlockHasher::BlockHasher(int64_t block_bytes) { table_.block_bytes = block_bytes; }

void BlockHasher::update(std::span<const std::byte> bytes) {
  whole_.update(bytes);
  while (!bytes.empty()) {
    const size_t room = static_cast<size_t>(table_.block_bytes) - block_.size();
    const size_t take = std::min(room, bytes.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (take == room) {
      table_.sums.push_back(xxh3_64(block_));
      block_.clear();
    }
  }
}

SumTable BlockHasher::finish() {
  if (!block_.empty()) table_.sums.push_back(xxh3_64(block_));
  block_.clear();
  return table_;
}

void write_sums(const std::string& path, const ShardSums& sums) {
  std::vector<std::byte> out(8);
  std::memcpy(out.data(), kSumsMagic, 8);
  put_table(out, sums.bin);
  put_table(out, sums.idx);
  put(out, xxh3_64(out));
  OutputFile file(path, Kind::kData);
  file.write(out);
  file.sync();
  file.close();
}

ShardSums read_sums(const InputFile& file, int64_t bin_bytes, int64_t idx_bytes) {
  const std::string& path = file.path();
  const std::string text = read_text(file, Kind::kData);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  if (bytes.size() < 16 || std::memcmp(bytes.data(), kSumsMagic, 8) != 0) {
    fail(Kind::kData, str(path, " is not a file of block checksums: it does not begin with LLMSUM1"));
  }
  const auto body = bytes.first(bytes.size() - 8);
  if (Cursor(bytes.last(8), path).next() != xxh3_64(body)) {
    fail(Kind::kData, str(path, " is damaged: its own checksum does not match"),
         "restore it from where the data set was copied from");
  }
  Cursor cursor(body.subspan(8), path);
  ShardSums sums;
  sums.bin = cursor.table(bin_bytes);
  sums.idx = cursor.table(idx_bytes);
  if (!cursor.empty()) fail(Kind::kData, str(path, " is longer than its tables"));
  return sums;
}

}  // namespace tokamak
