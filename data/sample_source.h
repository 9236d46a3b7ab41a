// The samples of a run. Sample k is a pure function of (manifests, seed, weights, order, sequence length, k). It does
// not depend on ranks, threads, prefetching or time, and no replay is needed to reach it. A schedule chooses the source
// of sample k, and the order of that source (order/source_order.h) its tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/file_pool.h"
#include "data/options.h"
#include "data/order/megatron_order.h"
#include "data/order/source_order.h"
#include "data/order/source_schedule.h"
#include "data/order/window_order.h"

namespace tokamak {

struct Sample {
  std::vector<int32_t> tokens;           // (T + 1); the last is not a position
  std::vector<int32_t> targets;          // (T) the token that follows each, or -1: none does, and the loss ignores it
  std::vector<int32_t> document_starts;  // offsets in [0, T) of document starts, ascending; the first is 0
  std::vector<TokenRange> ranges;        // of its source's data set
};

// Host memory of a SampleSource, in bytes. Every rank has its own.
struct SampleMemory {
  int64_t order = 0;    // arrays of order: megatron and of a mixture, checksums of tables of rows
  int64_t sources = 0;  // what the data sets keep: TokenStore::memory_bytes()
};

class SampleSource {
 public:
  // Opens `sources` (options.sources or options.validation). Error(kData): a damaged or short data set, ids beyond
  // vocab_size, two tokenizers. Error(kConfig): no sources, bad weights. Only order: megatron depends on `run_samples`,
  // the samples of the whole run; its arrays must fit into the memory that is available (Error(kDevice)).
  SampleSource(const DataOptions& options, std::span<const SourceOptions> sources, int64_t seed, int64_t vocab_size,
               int64_t run_samples = 0);
  // As above, but with data sets that are already open, one for each weight.
  SampleSource(const DataOptions& options, std::vector<Dataset> datasets, std::span<const double> weights, int64_t seed,
               int64_t run_samples = 0);

  // The memory of a source that is not made. Opens the files, with the constructor's errors, but makes no arrays.
  static SampleMemory planned_memory(const DataOptions& options, std::span<const SourceOptions> sources, int64_t seed,
                                     int64_t vocab_size, int64_t run_samples = 0);
  SampleMemory memory() const;

  // Fills `out` with sample k >= 0. Thread-safe; allocates nothing if `out` is reused.
  void read(int64_t k, Sample& out) const;

  int64_t sequence_length() const { return sequence_length_; }  // T
  int64_t sources() const { return std::ssize(datasets_); }
  const Dataset& dataset(int64_t source) const { return datasets_[source]; }
  int64_t windows(int64_t source) const { return orders_[source]->epoch(); }  // samples of one epoch
  int64_t tokens() const;                                                     // total of all sources
  const TokenizerIdentity& tokenizer() const { return datasets_.front().manifest().tokenizer; }

  double epochs(int64_t source, int64_t samples) const;  // of a source, after samples [0, samples) of the mixture
  // Error(kConfig) if a run of `samples` samples repeats a source more than max_epochs times, or than the source's own
  // max_epochs. 0: no limit.
  void check_epochs(int64_t samples, double max_epochs) const;

  // The state for a checkpoint: JSON of the identities and of the next sample.
  std::string state_json(int64_t next_sample) const;
  // The next sample of a recorded state; 0 for state_before_any_data. Error(kData), with both values, if the state
  // belongs to other data, tokenizer, seed, weights, order or sequence length.
  int64_t restore(const std::string& state_json) const;

 private:
  SampleSource(const DataOptions& options, int64_t seed);
  std::vector<double> open(std::span<const SourceOptions> sources, int64_t vocab_size);  // returns the weights
  void add(Dataset dataset, double max_epochs = 0);
  void check_options() const;
  void arrange(std::span<const double> weights, int64_t run_samples);
  EpochShuffle shuffle_of(int64_t source) const;
  // Megatron's arrays, counted and not yet made.
  struct MegatronPlan {
    int64_t samples = 0;
    std::vector<double> weights;                 // normalised
    std::vector<MegatronOrder::Options> orders;  // of each source
    int64_t blend = 0;                           // samples of the blend; 0: one source, which is not blended
    int64_t bytes = 0;
  };
  MegatronPlan plan_megatron(std::span<const double> weights, int64_t run_samples) const;
  void arrange_as_megatron(const MegatronPlan& plan);

  std::unique_ptr<FilePool> files_;
  std::vector<Dataset> datasets_;
  std::vector<double> max_epochs_;                    // of each source
  std::vector<std::unique_ptr<SourceOrder>> orders_;  // of each source
  std::unique_ptr<SourceSchedule> schedule_;
  std::vector<std::string> tables_;  // hashes of the tables of rows, for the state
  std::vector<int64_t> parts_;       // of the mixture's period, likewise
  std::vector<double> weights_;      // with order: megatron, likewise
  int64_t megatron_samples_ = 0;
  const DataOptions options_;
  int64_t sequence_length_;
  int64_t seed_;
};

// The state of an imported model: no data yet, any data next, but only with this tokenizer (its hash; "": unknown).
std::string state_before_any_data(const std::string& tokenizer_hash);
// The hash of the tokenizer in a recorded state; "": unknown.
std::string tokenizer_in_state(const std::string& state_json);

}  // namespace tokamak
