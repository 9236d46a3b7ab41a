// Samples in training: continues training.samples.prompts with the weights as they are. The generator is that of
// `tokamak generate` (infer/generator.h), which makes the same texts from that step's checkpoint. It reads weights and
// changes nothing that training does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/manifest.h"
#include "engine/engine.h"
#include "infer/generator.h"
#include "monitor/record.h"
#include "tokenizer/tokenizer.h"
#include "train/run_config.h"

namespace tokamak {

// The size of the engine's cache for samples, from the config alone: a plan reads no data.
struct SampleSizes {
  int64_t sequences = 0;  // at once; 0: there are no samples
  int64_t length = 0;     // most tokens of a prompt and its text
};
SampleSizes sample_sizes(const RunConfig& config);

// Problems of training.samples: the data has no tokenizer, or a prompt has no token or too many. Error(kData) if the
// data set or its tokenizer cannot be read.
std::vector<FieldError> find_sample_problems(const RunConfig& config);

class Sampler {
 public:
  // `config` has prompts and no such problems. Texts begin as the documents of the training data do.
  explicit Sampler(const RunConfig& config);

  struct Result {
    std::vector<SampleText> samples;  // in the order of the prompts
    std::string problem;              // why the texts end early; "": they do not
  };
  // Collective; every rank returns the same. All ranks take part in each forward pass, since all hold parts of the
  // weights; rank 0 chooses the tokens. `between` is called before each forward pass, on all ranks; it may throw.
  // Logits that are not finite end the texts, and not the run.
  Result run(Engine& engine, const std::function<void()>& between) const;

 private:
  Sampler(const RunConfig& config, const Manifest& data);

  SampleOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<GenerationRequest> requests_;
};

}  // namespace tokamak
