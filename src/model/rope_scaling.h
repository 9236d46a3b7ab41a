// RoPE scaling for contexts longer than the training length: Hugging Face's rope_scaling, key by key. The formulas are
// in rope_table.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class RopeType { kDefault, kLinear, kDynamic, kYarn, kLlama3 };
inline const std::vector<std::string>& enum_names(RopeType) {
  static const std::vector<std::string> names = {"default", "linear", "dynamic", "yarn", "llama3"};
  return names;
}

// 0 means that config.json lacks the key; each help text names the default of transformers.
struct RopeScaling {
  RopeType rope_type = RopeType::kDefault;
  double factor = 0;
  int64_t original_max_position_embeddings = 0;
  double low_freq_factor = 0;
  double high_freq_factor = 0;
  double beta_fast = 0;
  double beta_slow = 0;
  double attention_factor = 0;
  double mscale = 0;
  double mscale_all_dim = 0;
  bool truncate = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("rope_type", rope_type,
      "how frequencies are scaled; default: not at all. The keys below are for some types only");
    v("factor", factor,
      "growth of the context, at least 1; 0: yarn takes model.max_position_embeddings / "
      "original_max_position_embeddings, other types refuse it");
    v("original_max_position_embeddings", original_max_position_embeddings,
      "yarn and llama3, which need it: the context before scaling (that of dynamic is model.max_position_embeddings)");
    v("low_freq_factor", low_freq_factor,
      "llama3, which needs it: wavelengths above original_max_position_embeddings / this are scaled by factor");
    v("high_freq_factor", high_freq_factor,
      "llama3, which needs it: wavelengths below original_max_position_embeddings / this stay; above low_freq_factor");
    v("beta_fast", beta_fast, "yarn: frequencies of at least so many turns in the original context stay; 0: 32");
    v("beta_slow", beta_slow, "yarn: those of at most so many turns are scaled by factor; 0: 1");
    v("attention_factor", attention_factor, "yarn: multiplies cosines and sines; 0: 0.1 ln(factor) + 1");
    v("mscale", mscale,
      "yarn: with mscale_all_dim, attention_factor is (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor) + "
      "1); "
      "0: not given");
    v("mscale_all_dim", mscale_all_dim, "yarn: see mscale; 0: not given");
    v("truncate", truncate, "yarn: the bounds that beta_fast and beta_slow set are whole places of the head");
  }

  // For yarn: resolved values of fields where 0 means "the default of transformers".
  double extension(int64_t max_position_embeddings) const {
    return factor != 0 ? factor : double(max_position_embeddings) / double(original_max_position_embeddings);
  }
  double fast_turns() const { return beta_fast != 0 ? beta_fast : 32; }
  double slow_turns() const { return beta_slow != 0 ? beta_slow : 1; }

  // Keys that are out of range, missing or unused by rope_type, with values; empty if all are valid.
  std::vector<FieldError> problems(int64_t max_position_embeddings) const;
};

}  // namespace tokamak
