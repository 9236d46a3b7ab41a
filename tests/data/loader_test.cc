// The stream over all ranks is the same for any number of ranks, micro-batch size and restart position.
#include "data/loader.h"

#include <memory>
#include <set>

#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t T = 16;

struct Corpus {
  TempDir dir;
  std::unique_ptr<SampleSource> source;

  Corpus() {
    write_dataset(dir.file("a"), numbered_documents(1500, 40), {65000, 5000});
    write_dataset(dir.file("b"), numbered_documents(700, 90), {65000, 9000});
    open();
  }
  void open(int64_t seed = 3) {
    const std::vector<SourceOptions> sources = {{dir.file("a"), 0.7}, {dir.file("b"), 0.3}};
    source = std::make_unique<SampleSource>(data_options(T), sources, seed, 65000);
  }
};

// The global stream of `steps` steps, put together from what `ranks` loaders give: tokens and targets by sample.
std::vector<std::vector<int32_t>> stream(const SampleSource& source, int64_t first, int64_t steps, int64_t G, int64_t R,
                                         int64_t micro_batch, int64_t prefetch = 4) {
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(steps * G));
  for (int64_t rank = 0; rank < R; ++rank) {
    Loader loader(source, {rank, R, micro_batch, G, true, first, prefetch});
    for (int64_t i = 0; i < steps * loader.micro_batches_per_step(); ++i) {
      const MicroBatch& batch = loader.next();
      for (int64_t b = 0; b < batch.sequences; ++b) {
        auto& sample = out.at(static_cast<size_t>(batch.first_sample + b - first));
        REQUIRE(sample.empty());
        sample.assign(batch.tokens.begin() + b * T, batch.tokens.begin() + (b + 1) * T);
        sample.push_back(batch.targets[static_cast<size_t>((b + 1) * T - 1)]);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the global stream does not depend on ranks, micro-batches or prefetching") {
  Corpus corpus;
  const int64_t G = 24;
  const int64_t steps = 90;  // 2,160 samples
  const auto expected = stream(*corpus.source, 0, steps, G, 1, G);
  for (int64_t k = 0; k < steps * G; ++k) {
    Sample sample;
    corpus.source->read(k, sample);
    REQUIRE(expected[static_cast<size_t>(k)] == sample.tokens);
  }
  for (const int64_t R : {1, 2, 3, 8, 5}) {  // 5 does not divide 24: shares of 4 and 5
    CHECK(stream(*corpus.source, 0, steps, G, R, 1) == expected);
    CHECK(stream(*corpus.source, 0, steps, G, R, 2, 1) == expected);
    CHECK(stream(*corpus.source, 0, steps, G, R, 3, 9) == expected);
  }
  corpus.open();
  CHECK(stream(*corpus.source, 0, steps, G, 2, 4) == expected);  // opened anew
  corpus.open(4);
  CHECK(stream(*corpus.source, 0, steps, G, 2, 4) != expected);  // another seed
}

TEST_CASE("40 steps, a restart on other ranks with another batch, and the rest make the same stream") {
  Corpus corpus;
  const int64_t total = 2160;
  const auto expected = stream(*corpus.source, 0, total / 24, 24, 1, 24);
  for (const int64_t R : {1, 2, 3, 8}) {
    for (const int64_t steps : {1, 17, 40}) {
      auto got = stream(*corpus.source, 0, steps, 24, 3, 2);
      corpus.open();
      const int64_t next = corpus.source->restore(corpus.source->state_json(steps * 24));
      const auto rest = stream(*corpus.source, next, (total - next) / 8, 8, R, 1);
      got.insert(got.end(), rest.begin(), rest.end());
      CHECK(got == std::vector(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(got.size())));
      CHECK(static_cast<int64_t>(got.size()) == total);
    }
  }
}

TEST_CASE("a micro-batch has its documents' boundaries") {
  Corpus corpus;
  Loader masked(*corpus.source, {0, 1, 4, 10, true, 0});
  Loader plain(*corpus.source, {0, 1, 4, 10, false, 0});
  std::vector<int64_t> sizes;
  Sample sample;
  for (int i = 0; i < 60; ++i) {
    const MicroBatch& m = masked.next();
    sizes.push_back(m.sequences);
    REQUIRE(m.length == T);
    std::vector<int32_t> boundaries;
    for (int64_t b = 0; b < m.sequences; ++b) {
      corpus.source->read(m.first_sample + b, sample);
      for (const int32_t start : sample.document_starts) boundaries.push_back(static_cast<int32_t>(b * T) + start);
      for (int64_t t = 0; t < T; ++t) {
        const auto at = static_cast<size_t>(b * T + t);
        REQUIRE(m.tokens[at] == sample.tokens[static_cast<size_t>(t)]);
        REQUIRE(m.targets[at] == sample.tokens[static_cast<size_t>(t + 1)]);
      }
    }
    REQUIRE(m.segments == static_cast<int64_t>(boundaries.size()));
    boundaries.push_back(static_cast<int32_t>(m.sequences * T));
    REQUIRE(m.cu_seqlens == boundaries);
    for (size_t s = 0; s + 1 < boundaries.size(); ++s) {
      for (int32_t p = boundaries[s]; p < boundaries[s + 1]; ++p) {
        REQUIRE(m.positions[static_cast<size_t>(p)] == p - boundaries[s]);
      }
    }

    const MicroBatch& p = plain.next();
    REQUIRE(p.tokens == m.tokens);
    REQUIRE(p.segments == p.sequences);
    REQUIRE(p.cu_seqlens.size() == static_cast<size_t>(p.sequences + 1));
    REQUIRE(p.cu_seqlens.back() == p.sequences * T);
    for (size_t at = 0; at < p.positions.size(); ++at) REQUIRE(p.positions[at] == static_cast<int32_t>(at % T));
  }
  CHECK(std::vector<int64_t>(sizes.begin(), sizes.begin() + 4) == std::vector<int64_t>{4, 4, 2, 4});
}

TEST_CASE("damage found by the reading thread ends next(), after everything read before it") {
  Corpus corpus;
  const auto expected = stream(*corpus.source, 0, 100, 1, 1, 1);
  corpus.open();  // no block has been checked yet
  damage(corpus.dir.file("a") + "/part-00003.bin", 100);
  Loader loader(*corpus.source, {0, 1, 1, 1, true, 0});
  int64_t good = 0;
  try {
    for (; good < 100; ++good) {
      const MicroBatch& batch = loader.next();
      REQUIRE(std::equal(batch.tokens.begin(), batch.tokens.end(), expected[static_cast<size_t>(good)].begin()));
    }
    FAIL("the damage was not found");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kData);
    CHECK(std::string(e.what()).find("block 0 of " + corpus.dir.file("a") + "/part-00003.bin") != std::string::npos);
  }
  check_fails(Kind::kData, {"part-00003.bin"}, [&] { loader.next(); });  // and again, instead of hanging
  Sample sample;
  for (int64_t k = 0; k < good; ++k) CHECK_NOTHROW(corpus.source->read(k, sample));
  CHECK_THROWS_AS(corpus.source->read(good, sample), Error);
}

TEST_CASE("a loader without a reader ends at once") {
  Corpus corpus;
  for (int i = 0; i < 50; ++i) Loader(*corpus.source, {0, 2, 2, 8, true, i * 8});
  Loader one(*corpus.source, {1, 2, 2, 8, true, 0});
  one.next();
  CHECK(one.wait_seconds() >= 0);
  CHECK_THROWS_AS(Loader(*corpus.source, {0, 8, 1, 4, true, 0}), Error);
}
