// The source of weights for inference: a checkpoint of any world size, or a Hugging Face directory.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "comm/comm.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"
#include "train/run_config.h"
#include "train/state_slices.h"

namespace tokamak::cli {

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual const std::string& name() const = 0;     // its directory
  virtual const RunConfig& config() const = 0;     // model and precision; the rest if known
  virtual std::string tokenizer_path() const = 0;  // Error(kData) if there is none
  virtual std::string tokenizer_hash() const = 0;  // of the training's tokenizer; "": unknown
  virtual bool adds_bos() const = 0;               // whether texts begin with the BOS token; false if unknown
  virtual void fill(HostState& state) = 0;         // this rank's slices of the weights
};

// The options of a command that name its weights, and how they are used.
struct ModelOptions {
  std::string checkpoint, weights, model, tokenizer, dtype, backend;
  int64_t threads = 0;
  bool add_bos = false;
  CLI::Option* bos_given = nullptr;  // owned by the parser

  explicit ModelOptions(CLI::App* parser);
  bool adds_bos(const ModelSource& source) const { return bos_given->count() > 0 ? add_bos : source.adds_bos(); }
  RunConfig config_for(const ModelSource& source) const;
};

// Exactly one of `checkpoint` and `model` must be given. Error(kConfig, kCheckpoint, kData).
std::unique_ptr<ModelSource> open_model_source(Comm& comm, const ModelOptions& options);

// The source's own tokenizer, or the given one. Error(kData) if the model was trained with another one, or has fewer
// rows than the tokenizer has pieces.
std::unique_ptr<Tokenizer> load_tokenizer_for(const ModelSource& source, const ModelOptions& options);

// Copies the weights to the device, in the compute dtype too. `engine` is committed.
void fill(Engine& engine, ModelSource& source);

}  // namespace tokamak::cli
