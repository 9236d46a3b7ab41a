// The constraints on a decoder's dimensions. The upper bounds keep matrix sizes within int64.
#include "model/model_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/field_checks.h"

namespace tokamak {

namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 20;   // hidden and intermediate size
constexpr int64_t kMaxHeads = int64_t{1} << 14;   // also bounds the width of one head
constexpr int64_t kMaxLayers = 100000;            //
constexpr int64_t kMaxTokens = int64_t{1} << 31;  // token ids and positions are 32 bits

bool check_dimension(FieldChecks& checks, const std::string& key, int64_t value, int64_t largest) {
  return checks.given(value != 0, key, "give it a positive value") && checks.within(key, value, 1, largest);
}

}  // namespace

bool ModelConfig::slides(int64_t l) const {
  if (layer_types.empty()) return sliding_window > 0;
  return layer_types[static_cast<size_t>(l) % layer_types.size()] == LayerType::kSliding;
}

bool ModelConfig::rotates(int64_t l) const {
  return no_rope_layers.empty() || no_rope_layers[static_cast<size_t>(l) % no_rope_layers.size()] != 0;
}

double ModelConfig::output_range() const {
  const auto branches = double(2 * num_hidden_layers);
  return output_init == OutputInit::kDepth ? initializer_range / std::sqrt(branches) : initializer_range;
}

ModelConfig ModelConfig::with_local_rope() const {
  ModelConfig local = *this;
  local.rope_theta = rope_local_base_freq;
  local.rope_scaling = {};
  return local;
}

std::vector<FieldError> ModelConfig::problems() const {
  FieldChecks checks;
  const bool width_ok = check_dimension(checks, "model.hidden_size", hidden_size, kMaxWidth);
  check_dimension(checks, "model.intermediate_size", intermediate_size, kMaxWidth);
  check_dimension(checks, "model.num_hidden_layers", num_hidden_layers, kMaxLayers);
  const bool heads_ok = check_dimension(checks, "model.num_attention_heads", num_attention_heads, kMaxHeads);
  const bool kv_ok = checks.within("model.num_key_value_heads", num_key_value_heads, 0, kMaxHeads);
  const bool head_dim_ok = checks.within("model.head_dim", head_dim, 0, kMaxHeads);
  checks.within("model.vocab_size", vocab_size, 0, kMaxTokens);
  checks.within("model.max_position_embeddings", max_position_embeddings, 1, kMaxTokens);
  checks.positive("model.rope_theta", rope_theta);
  checks.positive("model.rms_norm_eps", rms_norm_eps);
  checks.positive("model.initializer_range", initializer_range);
  checks.not_negative("model.query_pre_attn_scalar", query_pre_attn_scalar);
  checks.not_negative("model.attn_logit_softcapping", attn_logit_softcapping);
  checks.not_negative("model.final_logit_softcapping", final_logit_softcapping);
  checks.within("model.sliding_window", sliding_window, 0, kMaxTokens);
  const bool any_slides = std::find(layer_types.begin(), layer_types.end(), LayerType::kSliding) != layer_types.end();
  checks.require(sliding_window > 0 || !any_slides, "model.sliding_window", sliding_window,
                 "must be positive, as model.layer_types has sliding_attention");
  checks.not_negative("model.rope_local_base_freq", rope_local_base_freq);
  if (rope_local_base_freq > 0) {
    checks.require(any_slides || (layer_types.empty() && sliding_window > 0), "model.rope_local_base_freq",
                   rope_local_base_freq, "needs sliding layers", "give model.sliding_window");
    checks.require(rope_scaling.rope_type != RopeType::kDynamic, "model.rope_local_base_freq", rope_local_base_freq,
                   "is not supported with rope_type dynamic");
  }
  checks.require(!embedding_norm || !scale_embeddings, "model.scale_embeddings", "true",
                 "has no effect beside model.embedding_norm, which undoes it");
  const auto check_list = [&](const char* key, int64_t size) {
    checks.require(size <= num_hidden_layers, key, str("a list of ", size),
                   str("must have at most model.num_hidden_layers (", num_hidden_layers, ") items"));
  };
  check_list("model.layer_types", std::ssize(layer_types));
  check_list("model.no_rope_layers", std::ssize(no_rope_layers));
  for (const int64_t rotates : no_rope_layers) {
    checks.require(rotates == 0 || rotates == 1, "model.no_rope_layers", rotates, "must be 1 or 0",
                   "1: with rotary embeddings, 0: without");
  }

  if (heads_ok && kv_ok) {
    checks.require(num_attention_heads % kv_heads() == 0, "model.num_key_value_heads", num_key_value_heads,
                   str("must divide model.num_attention_heads (", num_attention_heads, ")"),
                   "each key and value head serves the same number of query heads");
  }
  if (width_ok && heads_ok && head_dim_ok) {
    const bool divides = head_dim > 0 || hidden_size % num_attention_heads == 0;
    checks.require(divides, "model.num_attention_heads", num_attention_heads,
                   str("must divide model.hidden_size (", hidden_size, "), as model.head_dim is not given"),
                   "change one of the two, or give model.head_dim");
    if (divides && head_dim > 0) {
      checks.require(head_dim % 2 == 0, "model.head_dim", head_dim, "must be even: rotary embeddings turn pairs");
    } else if (divides) {
      checks.require(head_size() % 2 == 0, "model.num_attention_heads", num_attention_heads,
                     str("makes a head ", head_size(), " wide (model.hidden_size ", hidden_size, " / ",
                         num_attention_heads, "), which must be even: rotary embeddings turn pairs"));
    }
  }
  if (rope_scaling.rope_type == RopeType::kYarn) {
    checks.require(rope_theta > 1, "model.rope_theta", rope_theta, "must be above 1 for rope_type yarn");
  }
  if (rope_scaling.rope_type == RopeType::kDynamic && width_ok && heads_ok && head_dim_ok) {
    checks.require(head_size() > 2, "model.head_dim", head_size(), "must be above 2 for rope_type dynamic");
  }
  std::vector<FieldError> found = checks.take();
  const bool sizes_ok = found.empty();
  const auto add = [&](const std::vector<FieldError>& more) { found.insert(found.end(), more.begin(), more.end()); };
  add(rope_scaling.problems(max_position_embeddings));
  if (sizes_ok) add(mup.problems(*this));
  return found;
}

void ModelConfig::validate() const {
  const std::vector<FieldError> found = problems();
  if (!found.empty()) fail(Kind::kConfig, found.front().what, found.front().hint);
}

}  // namespace tokamak
