// The constraints on the keys of rope_scaling: each type has its own keys, and a key of another type is an error.
#include "model/rope_scaling.h"

#include "base/field_checks.h"

namespace tokamak {

namespace {

const std::string kPrefix = "model.rope_scaling.";

// A key that only some types use.
template <class Value>
void check_use(FieldChecks& checks, const RopeScaling& s, const char* key, const Value& value, bool given, bool used) {
  const std::string& type = enum_name(s.rope_type);
  checks.require(used || !given, kPrefix + key, value, str("is of no use to rope_type ", type),
                 str("remove it, or choose another ", kPrefix, "rope_type"));
}

void check_uses(FieldChecks& checks, const RopeScaling& s) {
  const bool yarn = s.rope_type == RopeType::kYarn, llama3 = s.rope_type == RopeType::kLlama3;
  const auto check = [&](const char* key, auto value, bool used) {
    check_use(checks, s, key, value, value != 0, used);
  };
  check("factor", s.factor, s.rope_type != RopeType::kDefault);
  check("original_max_position_embeddings", s.original_max_position_embeddings, yarn || llama3);
  check("low_freq_factor", s.low_freq_factor, llama3);
  check("high_freq_factor", s.high_freq_factor, llama3);
  check("beta_fast", s.beta_fast, yarn);
  check("beta_slow", s.beta_slow, yarn);
  check("attention_factor", s.attention_factor, yarn);
  check("mscale", s.mscale, yarn);
  check("mscale_all_dim", s.mscale_all_dim, yarn);
  check_use(checks, s, "truncate", s.truncate ? "true" : "false", !s.truncate, yarn);
}

void check_factor(FieldChecks& checks, const RopeScaling& s) {
  const std::string key = kPrefix + "factor";
  if (!checks.given(s.factor != 0, key, "how much longer the context becomes, for example 4")) return;
  checks.require(s.factor >= 1 && std::isfinite(s.factor), key, s.factor, "must be a number of at least 1");
}

void check_original(FieldChecks& checks, const RopeScaling& s, int64_t max_position_embeddings) {
  const std::string key = kPrefix + "original_max_position_embeddings";
  const int64_t original = s.original_max_position_embeddings;
  if (!checks.given(original != 0, key, "the longest sequence that the model was trained on before scaling")) return;
  checks.require(original >= 1 && original <= max_position_embeddings, key, original,
                 str("must be from 1 to model.max_position_embeddings (", max_position_embeddings, ")"));
}

void check_llama3(FieldChecks& checks, const RopeScaling& s) {
  const std::string low = kPrefix + "low_freq_factor", high = kPrefix + "high_freq_factor";
  const bool low_ok =
      checks.given(s.low_freq_factor != 0, low, "Llama 3.1 has 1") && checks.positive(low, s.low_freq_factor);
  const bool high_ok =
      checks.given(s.high_freq_factor != 0, high, "Llama 3.1 has 4") && checks.positive(high, s.high_freq_factor);
  if (!low_ok || !high_ok) return;
  checks.require(s.high_freq_factor > s.low_freq_factor, high, s.high_freq_factor,
                 str("must be above low_freq_factor (", s.low_freq_factor, ")"));
}

void check_yarn(FieldChecks& checks, const RopeScaling& s) {
  const bool fast_ok = checks.not_negative(kPrefix + "beta_fast", s.beta_fast);
  const bool slow_ok = checks.not_negative(kPrefix + "beta_slow", s.beta_slow);
  if (fast_ok && slow_ok) {
    checks.require(s.fast_turns() >= s.slow_turns(), kPrefix + "beta_fast", s.fast_turns(),
                   str("must be at least beta_slow (", s.slow_turns(), ")"));
  }
  checks.not_negative(kPrefix + "attention_factor", s.attention_factor);
  checks.not_negative(kPrefix + "mscale", s.mscale);
  checks.not_negative(kPrefix + "mscale_all_dim", s.mscale_all_dim);
  checks.require((s.mscale != 0) == (s.mscale_all_dim != 0), kPrefix + "mscale", s.mscale,
                 str("goes with mscale_all_dim (", s.mscale_all_dim, "): one alone changes nothing"),
                 "give both or neither");
  checks.require(s.attention_factor == 0 || s.mscale == 0, kPrefix + "mscale", s.mscale,
                 str("contradicts attention_factor (", s.attention_factor, "), which it would set"),
                 "give one of the two");
}

}  // namespace

std::vector<FieldError> RopeScaling::problems(int64_t max_position_embeddings) const {
  FieldChecks checks;
  check_uses(checks, *this);
  switch (rope_type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
    case RopeType::kDynamic:
      check_factor(checks, *this);
      break;
    case RopeType::kYarn:
      if (factor != 0) check_factor(checks, *this);
      check_original(checks, *this, max_position_embeddings);
      check_yarn(checks, *this);
      break;
    case RopeType::kLlama3:
      check_factor(checks, *this);
      check_original(checks, *this, max_position_embeddings);
      check_llama3(checks, *this);
  }
  return checks.take();
}

}  // namespace tokamak
