// A format is one implementation of TokenStore: data sets, samples and the loader take it as they take our shards.
#include "data/token_store.h"

#include "base/hash.h"
#include "data/loader.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t T = 16;

// Tokens in memory. Its identity is a hash of them, as a file's would be.
class MemoryStore final : public TokenStore {
 public:
  explicit MemoryStore(const Documents& documents)
      : TokenStore("memory", info_of(documents)), tokens_(concatenated(documents)) {
    int32_t start = 0;
    for (const auto& document : documents) {
      starts_.push_back(start);
      start += static_cast<int32_t>(document.size());
    }
  }
  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override {
    for (const int32_t start : starts_) {
      if (start >= first && start < first + count) out.push_back(static_cast<int32_t>(base + start - first));
    }
  }

 private:
  static ShardInfo info_of(const Documents& documents) {
    const std::vector<int32_t> tokens = concatenated(documents);
    ShardInfo info{"memory", std::ssize(tokens), std::ssize(documents)};
    info.hash = xxh3_128_hex(std::as_bytes(std::span(tokens)));
    return info;
  }
  void read_ids(int64_t first, std::span<int32_t> out) const override {
    std::copy_n(tokens_.begin() + first, out.size(), out.begin());
  }

  std::vector<int32_t> tokens_;
  std::vector<int32_t> starts_;
};

// The documents in two stores, the first with `split` of them.
Dataset in_memory(const Documents& documents, std::ptrdiff_t split, int64_t model_vocab_size = 65000) {
  TokenStores stores;
  stores.push_back(std::make_unique<MemoryStore>(Documents(documents.begin(), documents.begin() + split)));
  stores.push_back(std::make_unique<MemoryStore>(Documents(documents.begin() + split, documents.end())));
  Manifest manifest;
  manifest.vocab_size = 65000;
  manifest.tokenizer.hash = FixtureOptions().tokenizer_hash;
  return {"memory", std::move(manifest), std::move(stores), model_vocab_size};
}

SampleSource mixed(Dataset a, Dataset b) {
  std::vector<Dataset> datasets;
  datasets.push_back(std::move(a));
  datasets.push_back(std::move(b));
  return SampleSource(data_options(T), std::move(datasets), std::vector<double>{3, 1}, 7);
}

}  // namespace

TEST_CASE("the loader reads the same micro-batches from any format, mixed with shards of ours or not") {
  const TempDir dir;
  const Documents large = numbered_documents(600, 40), small = numbered_documents(90, 30, 500);
  write_dataset(dir.file("large"), large, {65000, 3000});
  write_dataset(dir.file("small"), small);
  FilePool pool;
  const auto ours = [&](const char* name) { return open_dataset(dir.file(name), 65000, pool); };
  const std::vector<SourceOptions> paths = {{dir.file("large"), 3}, {dir.file("small"), 1}};
  const SampleSource expected(data_options(T), paths, 7, 65000);
  const SampleSource foreign = mixed(in_memory(large, 250), in_memory(small, 1));
  const SampleSource both = mixed(ours("large"), in_memory(small, 89));
  Loader a(expected, {.rank = 1, .ranks = 2, .micro_batch = 3, .samples_per_step = 10});
  Loader b(foreign, {.rank = 1, .ranks = 2, .micro_batch = 3, .samples_per_step = 10});
  Loader c(both, {.rank = 1, .ranks = 2, .micro_batch = 3, .samples_per_step = 10});
  for (int i = 0; i < 400; ++i) {
    const MicroBatch& batch = a.next();
    for (const MicroBatch* other : {&b.next(), &c.next()}) {
      REQUIRE(other->tokens == batch.tokens);
      REQUIRE(other->targets == batch.targets);
      REQUIRE(other->cu_seqlens == batch.cu_seqlens);
    }
  }
}

TEST_CASE("a data set's identity covers the identities of its stores in any format") {
  const Documents documents = numbered_documents(100, 30);
  CHECK(in_memory(documents, 40).id() == in_memory(documents, 40).id());
  CHECK(in_memory(documents, 40).id() != in_memory(documents, 41).id());
  Documents other = documents;
  other[7].front() = 4;
  CHECK(in_memory(documents, 40).id() != in_memory(other, 40).id());
  const SampleSource before = mixed(in_memory(documents, 40), in_memory(documents, 40));
  const SampleSource after = mixed(in_memory(documents, 40), in_memory(other, 40));
  check_fails(Kind::kData, {"source 1"}, [&] { after.restore(before.state_json(5)); });
}

TEST_CASE("ids beyond the vocabulary are found in any format, by file and token") {
  Documents documents = numbered_documents(100, 30);
  documents[0] = {5, 6, 65000, kEos};
  std::vector<int32_t> out(10);
  check_fails(Kind::kData, {"token 2 of memory", "65000"}, [&] { in_memory(documents, 40).read(0, out); });
  documents[0][2] = -1;
  check_fails(Kind::kData, {"token 2 of memory", "-1"}, [&] { in_memory(documents, 40).read(1, out); });
  check_fails(Kind::kData, {"vocabulary of 65000"}, [&] { in_memory(documents, 40, 64000); });
}
