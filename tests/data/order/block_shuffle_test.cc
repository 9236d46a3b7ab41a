// The block shuffle is a bijection, and keeps a run's reads in few blocks.
#include "data/order/block_shuffle.h"

#include <algorithm>
#include <set>

#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

std::vector<int64_t> shuffled(int64_t n, int64_t block, uint64_t key) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(block_shuffled(i, n, block, key));
  return out;
}

}  // namespace

TEST_CASE("the block shuffle is a bijection around powers of two, for blocks of any size") {
  for (int bits = 1; bits <= 16; ++bits) {
    for (const int64_t n : {(int64_t{1} << bits) - 1, int64_t{1} << bits, (int64_t{1} << bits) + 1}) {
      for (const int64_t block : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{64}, n, n + 1, int64_t{1} << 40}) {
        if (bits > 11 && block < 7) continue;
        std::vector<int64_t> image = shuffled(n, block, static_cast<uint64_t>(17 * bits) + 3);
        std::sort(image.begin(), image.end());
        for (int64_t i = 0; i < n; ++i) REQUIRE(image[i] == i);
      }
    }
  }
  CHECK(block_shuffled((int64_t{1} << 62) - 1, int64_t{1} << 62, 4096, 5) < (int64_t{1} << 62));
}

TEST_CASE("a group's samples lie in its blocks and are mixed there") {
  constexpr int64_t kBlock = 64, kBlocks = 40, kCount = kBlock * kBlocks + 13;
  const std::vector<int64_t> order = shuffled(kCount, kBlock, 9);
  const int64_t group = kBlock * kBlocksPerGroup;
  for (const int64_t begin : {int64_t{0}, group}) {
    const int64_t end = begin == 0 ? group : kCount;  // the last group has 24 blocks and the rest
    std::vector<int64_t> samples(order.begin() + begin, order.begin() + end);
    std::sort(samples.begin(), samples.end());
    int64_t runs = 1;
    for (size_t i = 1; i < samples.size(); ++i) runs += samples[i] != samples[i - 1] + 1;
    CHECK(runs <= (begin == 0 ? kBlocksPerGroup + 1 : kBlocks - kBlocksPerGroup + 2));
    int64_t neighbours = 0;  // in the order of the run
    for (int64_t i = begin + 1; i < end; ++i) neighbours += order[i] == order[i - 1] + 1;
    CHECK(neighbours < 20);
  }
  CHECK(order != shuffled(kCount, kBlock, 10));
}

TEST_CASE("the samples outside of the whole blocks differ between epochs") {
  constexpr int64_t kCount = 40 * kBlocksPerGroup + 7, kBlock = 10;
  std::set<std::set<int64_t>> found;  // for each key, where the runs of the first group begin, modulo a block
  for (uint64_t key = 0; key < 8; ++key) {
    std::set<int64_t> group, begins;
    for (int64_t i = 0; i < kBlocksPerGroup * kBlock; ++i) group.insert(block_shuffled(i, kCount, kBlock, key));
    for (const int64_t sample : group) {
      if (group.count(sample - 1) == 0) begins.insert(sample % kBlock);
    }
    found.insert(begins);
  }
  CHECK(found.size() > 4);
}

TEST_CASE("data.shuffle_block decides the order, and a checkpoint records it") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(900, 40));
  const std::vector<SourceOptions> sources = {{dir.path()}};
  DataOptions options = data_options(16);
  const SampleSource plain(options, sources, 3, 65000);
  options.shuffle_block = 8;
  const SampleSource blocks(options, sources, 3, 65000);
  const int64_t W = blocks.windows(0);
  std::vector<std::set<int64_t>> epochs(2);
  int64_t same = 0;
  Sample a, b;
  for (int64_t k = 0; k < 2 * W; ++k) {
    blocks.read(k, a);
    plain.read(k, b);
    same += a.tokens == b.tokens;
    epochs[static_cast<size_t>(k / W)].insert(a.ranges[0].first);
  }
  CHECK(same < 20);
  for (const auto& epoch : epochs) CHECK(std::ssize(epoch) == W);
  CHECK(SampleSource(options, sources, 3, 65000).restore(blocks.state_json(5)) == 5);
  check_fails(Kind::kData, {"data.shuffle_block", "null", "8"}, [&] { blocks.restore(plain.state_json(5)); });
  options.shuffle_block = 9;
  check_fails(Kind::kData, {"data.shuffle_block", "8", "9"},
              [&] { SampleSource(options, sources, 3, 65000).restore(blocks.state_json(5)); });
  options.order = SampleOrder::kSequential;
  check_fails(Kind::kConfig, {"data.shuffle_block is 9", "sequential"},
              [&] { SampleSource(options, sources, 3, 65000); });
  options.shuffle_block = -1;
  check_fails(Kind::kConfig, {"data.shuffle_block is -1"}, [&] { SampleSource(options, sources, 3, 65000); });
}
