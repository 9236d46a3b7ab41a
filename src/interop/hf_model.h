// Reads weights from a model in Hugging Face's layout (config.json and safetensors), without a checkpoint:
//
//   const HfModel hf = HfModel::open("Qwen3-0.6B");
//   make_param_table(hf.config())                        its list of weights
//   load(hf, host_state.place(), host_state.slices());   as load(comm, checkpoint, ...)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/shard_file.h"
#include "formats/model_files.h"
#include "interop/hf_config.h"

namespace tokamak {

class HfModel {
 public:
  // Reads config.json and all headers. Error(kCheckpoint), naming file, key or tensor, if a required tensor is missing
  // or an unknown one is present.
  static HfModel open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const HfConfig& description() const { return description_; }
  const ModelConfig& config() const { return description_.model; }
  // Skipped tensors with the reason: their contents are redundant.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // The common dtype of all weights, or else the widest one.
  WeightType type() const { return type_; }
  std::string tokenizer_path() const;  // "" if there is none
  // Whether its tokenizer begins each text with the BOS token: add_bos_token of tokenizer_config.json. Without that
  // key, LlamaTokenizer does, and a tokenizer.json says it itself.
  bool adds_bos() const;

  ReadParam weights() const;  // valid while this object lives and is not moved

 private:
  HfModel(std::string directory, HfConfig description, ModelFiles files);
  void check_tensors();
  void check_tied_head() const;

  std::string directory_;
  HfConfig description_;
  ModelFiles files_;
  std::vector<std::string> left_out_;
  WeightType type_ = WeightType::kF32;
};

// Fills this rank's slices of every unit with the model's weights; moments become zero. Local, not collective.
void load(const HfModel& model, const ShardPlace& place, const std::vector<UnitSlices>& units);

}  // namespace tokamak
