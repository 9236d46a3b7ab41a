// The samples of a run. Sample k is a pure function of (manifests, seed, weights, order, sequence length, k). It does
// not depend on ranks, threads, prefetching or time, and no replay is needed to reach it. A schedule chooses the source
// of sample k, and the order of that source (order/source_order.h) its tokens.
//
// The stages of a run may have different lengths. Then the schedule and the orders count cells, windows of the longest
// length, and a sample is a part of a cell. So a change of length does not change which tokens are near each other, and
// a source continues in a later stage where an earlier one has left it.
#pragma once

#include <cstdint>
#include <map>
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
  int64_t source = 0;                    // SampleSource::dataset
  std::vector<TokenRange> ranges;        // of its source's data set
};

// Host memory of a SampleSource, in bytes. Every rank has its own.
struct SampleMemory {
  int64_t order = 0;    // arrays of order: megatron and of a mixture, checksums of tables of rows
  int64_t sources = 0;  // what the data sets keep: TokenStore::memory_bytes()
};

// How far earlier stages have read a data set.
struct SourcePast {
  int64_t number = 0;  // of the data set in the run, in the order of first use: decides its shuffle
  int64_t cells = 0;   // read by earlier streams
};
// By the data set's identity. A data set that is listed twice has two entries.
using DataPast = std::map<std::string, SourcePast>;

// The place in its data at which a stage of a run begins. A stream is a row of stages with the same sources, weights
// and order.
struct StagePlace {
  int64_t grid_length = 0;  // tokens of a cell, a multiple of the sequence length; 0: the sequence length
  int64_t first_cell = 0;   // of the stage, in its stream
  DataPast past = {};       // of earlier streams
};

class SampleSource {
 public:
  // Opens `sources` (options.sources or options.validation). Error(kData): a damaged or short data set, ids beyond
  // vocab_size, two tokenizers. Error(kConfig): no sources, bad weights. Only order: megatron depends on `run_samples`,
  // the samples of the whole run; its arrays must fit into the memory that is available (Error(kDevice)).
  SampleSource(const DataOptions& options, std::span<const SourceOptions> sources, int64_t seed, int64_t vocab_size,
               int64_t run_samples = 0, StagePlace place = {});
  // As above, but with data sets that are already open, one for each weight.
  SampleSource(const DataOptions& options, std::vector<Dataset> datasets, std::span<const double> weights, int64_t seed,
               int64_t run_samples = 0);

  // The memory of a source that is not made. Opens the files, with the constructor's errors, but makes no arrays.
  static SampleMemory planned_memory(const DataOptions& options, std::span<const SourceOptions> sources, int64_t seed,
                                     int64_t vocab_size, int64_t run_samples = 0);
  // The place of the stage after this one, which has `samples` samples: in the same stream, or in another.
  StagePlace next_in_stream(int64_t samples) const;
  StagePlace next_stream(int64_t samples) const;
  SampleMemory memory() const;

  // Fills `out` with sample k >= 0. Thread-safe; allocates nothing if `out` is reused.
  void read(int64_t k, Sample& out) const;

  int64_t sequence_length() const { return sequence_length_; }  // T
  int64_t sources() const { return std::ssize(datasets_); }
  const Dataset& dataset(int64_t source) const { return datasets_[source]; }
  int64_t windows(int64_t source) const { return cells(source) * parts(); }  // samples of one epoch
  int64_t tokens() const;                                                    // total of all sources
  const TokenizerIdentity& tokenizer() const { return datasets_.front().manifest().tokenizer; }

  // The epochs of a source after samples [0, samples), with those of earlier stages.
  double epochs(int64_t source, int64_t samples) const;
  // Error(kConfig) if a run of `samples` samples repeats a source more than max_epochs times, or than the source's own
  // max_epochs. 0: no limit.
  void check_epochs(int64_t samples, double max_epochs) const;

  // The state for a checkpoint: JSON of the identities and of the next sample.
  std::string state_json(int64_t next_sample) const;
  // The next sample of a recorded state; 0 for state_before_any_data. Error(kData), with both values, if the state
  // belongs to other data, tokenizer, seed, weights, order or sequence length.
  int64_t restore(const std::string& state_json) const;

 private:
  SampleSource(const DataOptions& options, int64_t seed, StagePlace place = {});
  std::vector<double> open(std::span<const SourceOptions> sources, int64_t vocab_size);  // returns the weights
  void add(Dataset dataset, double max_epochs = 0);
  void check_options() const;
  void arrange(std::span<const double> weights, int64_t run_samples);
  EpochShuffle shuffle_of(int64_t source) const;
  void set_past();                                                          // of each source, once all are open
  int64_t parts() const { return place_.grid_length / sequence_length_; }   // samples of a cell
  int64_t cells(int64_t source) const { return orders_[source]->epoch(); }  // of one epoch
  int64_t cells_of(int64_t samples) const;                                  // of the stage
  int64_t cells_read(int64_t source, int64_t cells_of_stream) const;        // with those of earlier streams
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
  StagePlace place_;
  std::vector<std::string> past_keys_;  // of each source, in DataPast
  std::vector<SourcePast> past_;        // of each source
};

// The state of an imported model: no data yet, any data next, but only with this tokenizer (its hash; "": unknown).
std::string state_before_any_data(const std::string& tokenizer_hash);
// The hash of the tokenizer in a recorded state; "": unknown.
std::string tokenizer_in_state(const std::string& state_json);

}  // namespace tokamak
