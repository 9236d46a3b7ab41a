// The samples that a run reads: those that it trains on, and those held out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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

struct RunData {
  // Error(kData) and Error(kConfig) as SampleSource, and if the tokenizers of training and validation data differ.
  RunData(const RunConfig& config, const RunTable& table);

  // Bits per byte of the held-out text; nothing if its bytes are unknown, or it is a mixture.
  std::optional<double> bits_per_byte(double validation_loss) const;
  // "A is B" for each validation set that is trained on too, under any path. Equal identities are equal tokens.
  std::vector<std::string> trained_on() const;

  SampleSource train;
  std::optional<SampleSource> validation;  // not shuffled
};

}  // namespace tokamak
