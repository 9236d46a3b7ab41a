// The bytes that `tokamak plan` counts for the data of a run are the bytes that it takes.
#include "base/fields.h"
#include "data/block_sums.h"
#include "data/loader.h"
#include "data/order/megatron_order.h"
#include "data/order/pack_table.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

constexpr int64_t kVocab = 65000;

// All documents have `length` tokens.
Documents equal_documents(int64_t count, int64_t length) {
  Documents documents(static_cast<size_t>(count), std::vector<int32_t>(static_cast<size_t>(length), 7));
  for (auto& document : documents) document.back() = kEos;
  return documents;
}

void check_loader(const std::string& directory, DataOptions options, int64_t micro_batch, int64_t prefetch) {
  const int64_t T = options.sequence_length;
  INFO("T " << T << ", B " << micro_batch << ", order " << enum_name(options.order));
  const SampleSource source(options, std::vector<SourceOptions>{{directory}}, 3, kVocab, 4000);
  Loader loader(source, {.micro_batch = micro_batch, .samples_per_step = 7, .prefetch = prefetch});
  const Loader::Sizes sizes{.micro_batch = micro_batch, .length = T, .prefetch = prefetch};
  const int64_t planned = Loader::planned_bytes(sizes) - kBinBlockBytes;
  CHECK(loader.reserved_bytes() == planned);
  for (int i = 0; i < 60; ++i) {
    const MicroBatch& batch = loader.next();
    REQUIRE(batch.segments == batch.sequences * T);  // as many as there can be
  }
  CHECK(loader.reserved_bytes() == planned);
}

}  // namespace

TEST_CASE("a loader reserves what is planned, and it suffices for documents of one token") {
  const TempDir dir;
  const int64_t count = 6 * 16 * 33;  // packed rows of either length are full
  write_dataset(dir.file("one"), equal_documents(count, 1));
  write_dataset(dir.file("two"), equal_documents(count, 2));
  for (const int64_t T : {16, 33}) {
    FilePool pool;
    pack_dataset(open_dataset(dir.file("two"), kVocab, pool), T, {});
    DataOptions packed = data_options(T);
    packed.packing = Packing::kBestFit;
    check_loader(dir.file("one"), data_options(T), 1, 4);
    check_loader(dir.file("one"), data_options(T), 3, 1);
    check_loader(dir.file("one"), data_options(T, SampleOrder::kMegatron), 3, 2);
    check_loader(dir.file("two"), packed, 2, 2);
  }
}

TEST_CASE("what is planned for an order and its sources is what they take") {
  const TempDir dir;
  write_dataset(dir.file("a"), numbered_documents(9000, 40), {kVocab, 50000});
  write_dataset(dir.file("b"), numbered_documents(300, 90), {kVocab, 4000});
  FilePool pool;
  for (const char* name : {"a", "b"}) pack_dataset(open_dataset(dir.file(name), kVocab, pool), 16, {});
  const std::vector<SourceOptions> sources = {{dir.file("a"), 0.7}, {dir.file("b"), 0.3}};
  DataOptions packed = data_options(16);
  packed.packing = Packing::kBestFit;
  for (const DataOptions& options : {data_options(16), packed, data_options(16, SampleOrder::kMegatron)}) {
    INFO("order " << enum_name(options.order) << ", packing " << enum_name(options.packing));
    const SampleMemory planned = SampleSource::planned_memory(options, sources, 3, kVocab, 9000);
    const SampleSource source(options, sources, 3, kVocab, 9000);
    // Megatron's lengths of sequences are released once the arrays are made.
    const int64_t lengths = options.order == SampleOrder::kMegatron ? 4 * (9000 + 300) : 0;
    CHECK(planned.order == source.memory().order + lengths);
    CHECK(planned.order > 0);
    CHECK(planned.sources == source.memory().sources);
    int64_t blocks = 0;
    for (int64_t i = 0; i < source.sources(); ++i) {
      for (const ShardInfo& shard : source.dataset(i).manifest().shards) {
        blocks += (shard.bytes + kBinBlockBytes - 1) / kBinBlockBytes;
        blocks += (shard.index_bytes + kIdxBlockBytes - 1) / kIdxBlockBytes;
      }
    }
    CHECK(planned.sources == 9 * blocks);  // a checksum, and whether the block was checked
  }
}

TEST_CASE("Megatron's arrays of one epoch and of several are as large as planned") {
  const std::vector<int32_t> lengths(500, 37);
  for (const int64_t samples : {100, 1000, 5000}) {
    const MegatronOrder::Options options{.length = 32, .samples = samples, .seed = 5};
    const MegatronOrder order(lengths, {0, 500}, options);
    CHECK(order.memory_bytes() == 8 * 501 + 4 * std::ssize(order.document_index()) +
                                      8 * std::ssize(order.sample_index()) + 4 * std::ssize(order.shuffle_index()));
    CHECK(MegatronOrder::planned_bytes(500 * 37, 500, options) == order.memory_bytes() + 4 * 500);
  }
}

TEST_CASE("a list of a raw file's documents takes eight bytes each, and an index that is read in place none") {
  const TempDir dir;
  const Documents documents = equal_documents(40, 3);
  std::string rows;
  for (int64_t d = 0; d < 40; ++d) rows += str(3 * d, ",", 3 * d + 3, ",id,/corpus/file.gz,7\n");
  write_file(dir.file("x.npy"), packed<uint32_t>(concatenated(documents)));
  write_file(dir.file("x.csv.gz"), gzip_stored(rows));
  write_megatron<uint16_t>(dir.file("m"), documents, 8);
  SourceOptions raw = source_at(dir.file("x.npy"));
  raw.token_type = TokenElement::kUint32;
  FilePool pool;
  CHECK(open_dataset(raw, kVocab, pool).memory_bytes() == 8 * 40);
  CHECK(open_dataset(source_at(dir.file("m")), kVocab, pool).memory_bytes() == 0);
}
