// The first sample costs a few reads, however long the index is: nothing is built, and nothing is read through.
#include <filesystem>
#include <fstream>

#include "data/block_sums.h"
#include "data/index_format.h"
#include "data/loader.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t kDocuments = 5'000'000'000;  // an index of 100 GB
constexpr int64_t kTokens = 32'000'000'000;

// Sums of a file of zeros that begins with `head`.
SumTable sums_of_zeros(int64_t bytes, int64_t block_bytes, std::span<const std::byte> head) {
  std::vector<std::byte> block(static_cast<size_t>(block_bytes));
  const uint64_t zeros = xxh3_64(block);
  SumTable table{block_bytes,
                 std::vector<uint64_t>(static_cast<size_t>((bytes + block_bytes - 1) / block_bytes), zeros)};
  table.sums.back() = xxh3_64(std::span(block).first(static_cast<size_t>((bytes - 1) % block_bytes + 1)));
  std::copy(head.begin(), head.end(), block.begin());
  table.sums.front() = xxh3_64(block);
  return table;
}

// A sparse file. Returns whether this file system has such.
bool write_sparse(const std::string& path, int64_t bytes, std::span<const std::byte> head) {
  OutputFile file(path, Kind::kData);
  file.write(head);
  file.close();
  std::error_code code;
  std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes), code);
  return !code;
}

// Bytes that this process has read by system calls.
int64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  int64_t value = -1;
  file >> name >> value;
  return name == "rchar:" ? value : -1;
}

}  // namespace

TEST_CASE("the first batch of an index of 100 GB reads less than 32 MB") {
  const TempDir dir;
  const IndexHeader header{TokenElement::kUint16, kDocuments, kDocuments + 1};
  const auto head = encode_index_header(header);
  Manifest manifest;
  manifest.vocab_size = 1000;
  manifest.tokenizer = {"fixture", FixtureOptions().tokenizer_hash, ""};
  const ShardInfo& shard =
      manifest.shards.emplace_back(ShardInfo{"part-00000", kTokens, kDocuments, 2 * kTokens, header.file_bytes(), 0,
                                             std::string(32, '0'), std::string(32, '0')});
  REQUIRE(shard.index_bytes > 100'000'000'000);
  if (!write_sparse(dir.file("part-00000.bin"), shard.bytes, {}) ||
      !write_sparse(dir.file("part-00000.idx"), shard.index_bytes, head)) {
    WARN("skipped: this file system has no sparse files of 100 GB");
    return;
  }
  write_sums(dir.file("part-00000.sum"),
             {sums_of_zeros(shard.bytes, kBinBlockBytes, {}), sums_of_zeros(shard.index_bytes, kIdxBlockBytes, head)});
  write_manifest(dir.path(), manifest);

  const int64_t before = bytes_read();
  if (before < 0) {
    WARN("skipped: no /proc/self/io");
    return;
  }
  const SampleSource source(data_options(4096), std::vector<SourceOptions>{{dir.path()}}, 1, 1000);
  Loader loader(source, {.rank = 0, .ranks = 1, .micro_batch = 2, .samples_per_step = 2, .prefetch = 1});
  const MicroBatch& batch = loader.next();
  CHECK(batch.segments == 2);                 // all documents are empty, and begin at token 0
  CHECK(bytes_read() - before < 32'000'000);  // 12 MB of checksums, and a block for each place that is looked at
}
