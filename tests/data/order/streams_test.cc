// The stream of samples of each order, packing and mixture is the same bits on any number of ranks. A resume on another
// number or with another batch does not change it. Each rank opens the data for itself, as the ranks of a run do.
#include <map>
#include <set>

#include "data/loader.h"
#include "data/order/pack_table.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

constexpr int64_t T = 16;
constexpr int64_t kVocab = 65000;
constexpr int64_t kBatch = 24;     // sequences a step
constexpr int64_t kSamples = 624;  // several epochs of each source

// All that training sees of a sample: tokens, targets and where segments begin.
struct Seen {
  std::vector<int32_t> tokens, targets, starts;
  bool operator==(const Seen&) const = default;
  auto operator<=>(const Seen&) const = default;
};
using Stream = std::vector<Seen>;

struct Case {
  std::string name;
  std::vector<std::string> sources;  // with weights 0.7, 0.3
  DataOptions options = {};
};

DataOptions ordered(SampleOrder order, Packing packing = Packing::kWindows, int64_t shuffle_block = 0) {
  DataOptions options = data_options(T, order);
  options.packing = packing;
  options.shuffle_block = shuffle_block;
  if (order == SampleOrder::kMegatron) options.megatron_samples = kSamples;
  return options;
}

std::vector<Case> all_cases() {
  using enum SampleOrder;
  const std::vector<std::string> one = {"large"}, two = {"large", "small"}, foreign = {"megatron", "small"};
  std::vector<Case> cases = {{"shuffled", one, ordered(kShuffled)},
                             {"sequential", one, ordered(kSequential)},
                             {"mixture", two, ordered(kShuffled)},
                             {"mixture in stored order", two, ordered(kSequential)},
                             {"another program's source in a mixture", foreign, ordered(kShuffled)},
                             {"blocks", one, ordered(kShuffled, Packing::kWindows, 4)},
                             {"blocks in a mixture", two, ordered(kShuffled, Packing::kWindows, 4)},
                             {"megatron", one, ordered(kMegatron)},
                             {"megatron, a part", one, ordered(kMegatron)},
                             {"megatron, a blend", two, ordered(kMegatron)},
                             {"megatron, another program's source", foreign, ordered(kMegatron)},
                             {"packed", one, ordered(kShuffled, Packing::kBestFit)},
                             {"packed in stored order", one, ordered(kSequential, Packing::kBestFit)},
                             {"packed mixture", two, ordered(kShuffled, Packing::kBestFit)},
                             {"packed blocks", two, ordered(kShuffled, Packing::kBestFit, 4)}};
  for (Case& of : cases) {
    if (of.name == "megatron, a part") of.options.megatron_split = "7,3";
  }
  return cases;
}

class Corpora {
 public:
  Corpora() {
    const Documents large = numbered_documents(200, 40), small = numbered_documents(40, 50, 30000);
    const Documents foreign = numbered_documents(150, 45, 10000);
    const std::string unknown;  // another program's files do not say which tokenizer made them
    write_dataset(file("large"), large, {.shard_tokens = 3000, .tokenizer_hash = unknown});
    write_dataset(file("small"), small, {.shard_tokens = 700, .tokenizer_hash = unknown});
    write_megatron<uint16_t>(file("megatron"), foreign, 8);
    FilePool pool;
    for (const char* name : {"large", "small"}) pack_dataset(open_dataset(file(name), kVocab, pool), T, {});
  }

  SampleSource open(const Case& of) const {
    constexpr double kWeights[] = {0.7, 0.3};
    std::vector<SourceOptions> sources;
    for (const std::string& name : of.sources) {
      SourceOptions& source = sources.emplace_back();
      source.path = file(name);
      source.weight = kWeights[sources.size() - 1];
      source.max_epochs = 20;
    }
    SampleSource source(of.options, sources, 3, kVocab);
    source.check_epochs(kSamples, 0);
    return source;
  }

 private:
  std::string file(const std::string& name) const { return dir_.file(name); }

  TempDir dir_;
};

void append_sequences(const MicroBatch& batch, std::map<int64_t, Seen>& out) {
  for (int64_t b = 0; b < batch.sequences; ++b) {
    const auto piece = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + b * T, all.begin() + (b + 1) * T);
    };
    Seen seen{piece(batch.tokens), piece(batch.targets), {}};
    for (int64_t s = 0; s < batch.segments; ++s) {
      if (batch.cu_seqlens[s] / T == b) seen.starts.push_back(static_cast<int32_t>(batch.cu_seqlens[s] - b * T));
    }
    REQUIRE(out.emplace(batch.first_sample + b, std::move(seen)).second);  // no sample is read by two ranks
  }
}

struct Run {
  int64_t ranks = 1;
  int64_t first = 0, steps = 0;
  int64_t batch = kBatch;
  int64_t micro_batch = 2;
};

// The samples that the ranks of a run train on, in order. Each rank begins with what a checkpoint's state says.
Stream stream(const Corpora& corpora, const Case& of, const Run& run) {
  const std::string state = corpora.open(of).state_json(run.first);
  std::map<int64_t, Seen> samples;
  for (int64_t rank = 0; rank < run.ranks; ++rank) {
    const SampleSource source = corpora.open(of);
    Loader loader(source, {.rank = rank,
                           .ranks = run.ranks,
                           .micro_batch = run.micro_batch,
                           .samples_per_step = run.batch,
                           .first_sample = source.restore(state),
                           .prefetch = 1 + rank});
    for (int64_t i = 0; i < run.steps * loader.micro_batches_per_step(); ++i) append_sequences(loader.next(), samples);
  }
  REQUIRE(samples.begin()->first == run.first);
  REQUIRE(samples.rbegin()->first == run.first + run.steps * run.batch - 1);
  Stream out;
  for (auto& [k, seen] : samples) out.push_back(std::move(seen));
  REQUIRE(std::ssize(out) == run.steps * run.batch);
  return out;
}

// Every sample by itself, from the last to the first, so that none can depend on those before it.
Stream by_position(const SampleSource& source) {
  Stream out(kSamples);
  Sample sample;
  for (int64_t k = kSamples - 1; k >= 0; --k) {
    source.read(k, sample);
    out[static_cast<size_t>(k)] = {
        {sample.tokens.begin(), sample.tokens.end() - 1}, sample.targets, sample.document_starts};
  }
  return out;
}

bool equal_from(const Stream& whole, int64_t first, const Stream& part) {
  return first + std::ssize(part) <= std::ssize(whole) && std::equal(part.begin(), part.end(), whole.begin() + first);
}

}  // namespace

TEST_CASE("each order's stream is the same on 1, 2, 3 and 8 ranks, after a resume and after a change of the batch") {
  const Corpora corpora;
  std::map<Stream, std::string> streams;
  for (const Case& of : all_cases()) {
    INFO(of.name);
    const Stream whole = by_position(corpora.open(of));
    const auto [other, is_new] = streams.emplace(whole, of.name);
    INFO("as " << other->second);
    CHECK(is_new);  // each case has an order of its own
    CHECK(std::set<Seen>(whole.begin(), whole.end()).size() > 60);
    for (const int64_t ranks : {1, 2, 3, 8}) {
      INFO(ranks << " ranks");
      CHECK(equal_from(whole, 0, stream(corpora, of, {.ranks = ranks, .steps = kSamples / kBatch})));
      // A run of 24 samples a step stopped after step 7. It goes on here, with 44.
      const Run resumed = {.ranks = ranks, .first = 7 * kBatch, .steps = 10, .batch = 44, .micro_batch = 5};
      CHECK(equal_from(whole, resumed.first, stream(corpora, of, resumed)));
    }
  }
}
