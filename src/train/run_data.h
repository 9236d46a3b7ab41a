// The samples that a run reads: those that it trains on, and those held out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "data/manifest.h"
#include "data/sample_source.h"
#include "tokenizer/tokenizer.h"
#include "train/run_config.h"
#include "train/run_table.h"

namespace tokamak {

// The manifest of the first of data.sources, whose tokenizer and vocabulary are the run's. Errors name the key.
Manifest read_first_manifest(const RunConfig& config);
// The tokenizer that a data set carries; nullptr if it carries none.
std::unique_ptr<Tokenizer> load_tokenizer_of(const std::string& directory, const Manifest& data);

// Host memory of a run's data on each rank, in bytes. It is no part of the plan's buffers.
struct DataMemory {
  int64_t read_ahead = 0;  // of the loaders that exist at the same time
  SampleMemory samples;    // of training and validation data

  int64_t total() const { return read_ahead + samples.order + samples.sources; }
  std::string text() const;  // for people: the sum, and each part
};

// The memory of the training's loader, and of those of validation or of gradients that are computed again.
int64_t read_ahead_bytes(const RunConfig& config, int64_t micro_batch);
// Opens the data as RunData does, with its errors, but makes no arrays. `config` is that of one row of stages.
DataMemory plan_data_memory(const RunConfig& config, int64_t micro_batch);

// The place of each row of the run's stages in its data. It depends on what the rows before it read, on the longest
// length, and on the samples that the run has left out. Opens the training data of all rows. Error(kData) and
// Error(kConfig) as RunData, naming the stage.
std::vector<StagePlace> stage_places(const RunConfig& config, const RunTable& table,
                                     const std::vector<LeftOut>& left_out = {});

struct RunData {
  // `config` is that of one row of stages, which begins at `place`. Error(kData) and Error(kConfig) as SampleSource,
  // and if the tokenizers of training and validation data differ.
  explicit RunData(const RunConfig& config, StagePlace place = {});

  DataMemory memory(const RunConfig& config, int64_t micro_batch) const;

  // Why this row of stages, with so many more samples left out, exceeds max_epochs; empty: it does not.
  std::string exceeded_epochs(const RunConfig& config, int64_t left_out) const;

  // Bits per byte of the held-out text; nothing if its bytes are unknown, or it is a mixture.
  std::optional<double> bits_per_byte(double validation_loss) const;
  // "A is B" for each validation set that is trained on too, under any path. Equal identities are equal tokens.
  std::vector<std::string> trained_on() const;

  SampleSource train;
  std::optional<SampleSource> validation;  // not shuffled
};

}  // namespace tokamak
