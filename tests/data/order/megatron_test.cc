// Megatron's order against golden vectors made with numpy. tests/interop/megatron_order_test.py compares samples with
// the real megatron-core.
#include <numeric>

#include "data/order/megatron_blend.h"
#include "data/order/megatron_order.h"
#include "data/order/numpy_random.h"
#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

const std::vector<int32_t> kLengths = {7, 3, 12, 5, 9, 1, 4, 8};
constexpr int64_t kLength = 8;
using Cuts = std::vector<MegatronOrder::Cut>;

MegatronOrder golden_order(int64_t samples) {
  return MegatronOrder(kLengths, {0, std::ssize(kLengths)}, {kLength, samples, 1234});
}

}  // namespace

TEST_CASE("numpy's shuffle of [0, 10) with seed 1234") {
  std::vector<int32_t> values(10);
  std::iota(values.begin(), values.end(), 0);
  NumpyRandom(1234).shuffle(std::span(values));
  CHECK(values == std::vector<int32_t>{7, 2, 9, 1, 0, 8, 4, 5, 6, 3});
}

TEST_CASE("Megatron's arrays of one epoch, of a last epoch on its own, and of three") {
  const MegatronOrder one = golden_order(5);
  CHECK(one.epochs() == 1);
  CHECK(one.document_index() == std::vector<int32_t>{2, 1, 6, 0, 4, 5, 3, 7});
  CHECK(one.sample_index() == Cuts{{0, 0}, {0, 8}, {2, 1}, {3, 5}, {4, 6}, {6, 4}, {7, 7}});
  CHECK(one.shuffle_index() == std::vector<uint32_t>{0, 4, 3, 2, 5, 1});

  const MegatronOrder two = golden_order(8);
  CHECK(two.epochs() == 2);
  CHECK(two.document_index() == std::vector<int32_t>{2, 1, 6, 0, 4, 5, 3, 7, 5, 0, 3, 4, 2, 6, 1, 7});
  CHECK(
      two.sample_index() ==
      Cuts{
          {0, 0}, {0, 8}, {2, 1}, {3, 5}, {4, 6}, {6, 4}, {7, 7}, {9, 6}, {11, 2}, {12, 1}, {12, 9}, {14, 1}, {15, 6}});
  CHECK(two.shuffle_index() == std::vector<uint32_t>{1, 0, 3, 5, 2, 4, 8, 9, 11, 7, 10, 6});

  const MegatronOrder three = golden_order(14);
  CHECK(three.epochs() == 3);
  CHECK(three.document_index() ==
        std::vector<int32_t>{5, 3, 0, 4, 6, 2, 2, 7, 1, 1, 0, 4, 5, 6, 3, 7, 5, 1, 3, 4, 0, 7, 6, 2});
  CHECK(three.shuffle_index() == std::vector<uint32_t>{7, 1, 10, 5, 8, 4, 3, 11, 2, 6, 9, 0, 14, 17, 16, 13, 12, 15});
}

TEST_CASE("the samples of an order cover its sequences, and share one token with the next") {
  const MegatronOrder order = golden_order(14);
  std::vector<TokenRange> ranges;
  for (int64_t j = 0; j < 2 * order.samples(); ++j) {
    order.ranges(j, ranges);
    int64_t tokens = 0;
    for (const TokenRange& range : ranges) {
      CHECK(range.count > 0);
      tokens += range.count;
    }
    CHECK(tokens == kLength + 1);
  }
  CHECK(order.epoch() == 6);
  // Arrays of 8 sequences (and their lengths), of 24 documents, 18 samples and one end.
  CHECK(MegatronOrder::planned_bytes(49, 8, {kLength, 14, 0}) >= 8 * 12 + 24 * 4 + 18 * 12 + 8);
}

TEST_CASE("the example of Megatron's blend, and its shares") {
  const MegatronBlend blend(std::vector<double>{0.5, 0.3, 0.2}, 10);
  std::vector<int64_t> sources, indices;
  for (int64_t k = 0; k < 10; ++k) {
    sources.push_back(blend.at(k).source);
    indices.push_back(blend.at(k).index);
  }
  CHECK(sources == std::vector<int64_t>{0, 1, 2, 0, 1, 0, 2, 0, 1, 0});
  CHECK(indices == std::vector<int64_t>{0, 0, 0, 1, 1, 2, 1, 3, 2, 4});
  for (int64_t samples = 0; samples <= 25; ++samples) {
    for (int64_t source = 0; source < 3; ++source) {
      int64_t expected = 0;
      for (int64_t k = 0; k < samples; ++k) expected += blend.at(k).source == source;
      CHECK(blend.count(source, samples) == expected);
    }
  }
  CHECK(megatron_share(100, 0.3) == 30);
  CHECK(megatron_share_with_surplus(100, 0.3) == 31);
}

TEST_CASE("a split is rounded as Python rounds, and a bad one is refused") {
  CHECK(megatron_training_part("", 9).end == 9);
  CHECK(megatron_training_part("969,30,1", 1000).end == 969);
  CHECK(megatron_training_part("1,1", 5).end == 2);    // 2.5, a half to even
  CHECK(megatron_training_part("1/1/0", 7).end == 4);  // 3.5
  CHECK(megatron_training_part("1", 7).end == 7);
  for (const std::string split : {"none", "0,1", "1,2,3,4", "1.2.3,1", ".", "0"}) {
    check_fails(Kind::kConfig, {"data.megatron_split", split}, [&] { megatron_training_part(split, 10); });
  }
}

TEST_CASE("order megatron reads the same stream after a resume, and refuses another number of samples") {
  const TempDir dir;
  write_dataset(dir.file("a"), numbered_documents(200, 30), {65000, 1000});  // in several shards
  write_dataset(dir.file("b"), numbered_documents(90, 50), {65000, 1000});
  const std::vector<SourceOptions> sources = {{dir.file("a"), 0.7}, {dir.file("b"), 0.3}};
  const DataOptions options = data_options(16, SampleOrder::kMegatron);
  const SampleSource source(options, sources, 7, 65000, 500);
  const SampleSource again(options, sources, 7, 65000, 500);
  CHECK(again.restore(source.state_json(123)) == 123);
  Sample a, b;
  for (int64_t k = 499; k >= 0; --k) {
    source.read(k, a);
    again.read(k, b);
    REQUIRE(a.tokens == b.tokens);
    REQUIRE(a.document_starts == b.document_starts);
    REQUIRE(std::equal(a.targets.begin(), a.targets.end(), a.tokens.begin() + 1));
    REQUIRE(a.document_starts.size() == a.ranges.size() - (a.ranges.back().count == 1 && a.ranges.size() > 1));
  }
  source.read(100'000, a);  // what is prefetched after the last sample
  check_fails(Kind::kData, {"megatron_samples", "500", "501"},
              [&] { SampleSource(options, sources, 7, 65000, 501).restore(source.state_json(1)); });
  DataOptions pinned = options;
  pinned.megatron_samples = 500;
  CHECK(SampleSource(pinned, sources, 7, 65000, 501).restore(source.state_json(1)) == 1);
  check_fails(Kind::kConfig, {"run.seed", "-1"}, [&] { SampleSource(options, sources, -1, 65000, 500); });
  check_fails(Kind::kConfig, {"samples of a run"}, [&] { SampleSource(options, sources, 1, 65000); });
  check_fails(Kind::kDevice, {"arrays", "available", "1000000000000"},
              [&] { SampleSource(options, sources, 1, 65000, 1'000'000'000'000); });
}

TEST_CASE("the sequence lengths of a data set are its documents', also of a store without an index of them") {
  const TempDir dir;
  const Documents documents = numbered_documents(300, 30);
  write_dataset(dir.path(), documents, {65000, 700});
  const SampleSource source(data_options(16), std::vector<SourceOptions>{{dir.path()}}, 1, 65000);
  std::vector<int32_t> expected;
  for (const auto& document : documents) expected.push_back(static_cast<int32_t>(document.size()));
  CHECK(source.dataset(0).sequence_lengths() == expected);
}
