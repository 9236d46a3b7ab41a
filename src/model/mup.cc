#include "model/mup.h"

#include <cmath>
#include <string_view>

#include "base/field_checks.h"
#include "model/model_config.h"
#include "tensor/param_table.h"

namespace tokamak {

namespace {

ModelConfig base_of(const ModelConfig& model) {
  ModelConfig base = model;
  const auto replace = [](int64_t& size, int64_t by) {
    if (by > 0) size = by;
  };
  replace(base.hidden_size, model.mup.base_hidden_size);
  replace(base.intermediate_size, model.mup.base_intermediate_size);
  replace(base.num_attention_heads, model.mup.base_num_attention_heads);
  replace(base.head_dim, model.mup.base_head_dim);
  replace(base.num_hidden_layers, model.mup.base_num_hidden_layers);
  return base;
}

double ratio(int64_t size, int64_t base) { return double(size) / double(base); }

// The weight times a multiplier after it -> the weight alone, with the same outputs and updates (AdamW).
void absorb(double multiplier, Param& param) {
  param.init_mean *= multiplier;
  param.init_std *= multiplier;
  param.update.lr *= multiplier;
  param.update.decay /= multiplier;  // of the decay times the learning rate nothing changes
  param.update.eps /= multiplier;    // nor of eps beside the gradient
}

// The rules for a model with multipliers, whose matrices then absorb them.
void scale(const ModelConfig& model, const ModelConfig& base, Param& param) {
  const auto is = [&](const char* part) { return param.name.find(part) != std::string::npos; };
  const double m = ratio(model.hidden_size, base.hidden_size),
               n = ratio(model.num_hidden_layers, base.num_hidden_layers);
  const double alpha = model.mup.depth_alpha;
  param.update.eps = 1 / m;
  if (is("model.layers.")) {
    param.update.lr = std::pow(n, alpha - 1);
    param.update.eps /= std::pow(n, alpha);
    if (param.shape.rank() == 2) {
      const double fan_in = is(".o_proj.")      ? ratio(model.q_width(), base.q_width())
                            : is(".down_proj.") ? ratio(model.intermediate_size, base.intermediate_size)
                                                : m;
      param.init_std /= std::sqrt(fan_in);
      param.update.lr /= fan_in;
      param.update.decay *= fan_in;
      param.update.fan_in = fan_in;
    }
    if (is(".o_proj.") || is(".down_proj.")) absorb(std::pow(n, -alpha), param);
    // Attention divides by sqrt(D), and muP by D.
    if (is(model.has_qk_norm() ? ".q_norm." : ".q_proj."))
      absorb(std::sqrt(ratio(base.head_size(), model.head_size())), param);
  } else if (is(model.tie_word_embeddings ? "model.norm." : "lm_head.")) {
    absorb(1 / m, param);
  }
}

}  // namespace

std::vector<FieldError> MupOptions::problems(const ModelConfig& model) const {
  FieldChecks checks;
  bool valid = true;
  const auto check = [&](const char* name, int64_t base, int64_t own, bool grows_with_width) {
    const std::string key = str("model.mup.", name);
    valid &= checks.within(key, base, 0, int64_t{1} << 20);
    if (!is_on()) {
      checks.require(base == 0, key, base, "needs model.mup.base_hidden_size", "it may be model.hidden_size");
    } else if (grows_with_width && base_hidden_size != model.hidden_size) {
      checks.given(
          base != 0, key,
          str("the base is ", base_hidden_size, " wide and the model ", model.hidden_size, "; the model has ", own));
    }
  };
  check("base_hidden_size", base_hidden_size, model.hidden_size, false);
  check("base_intermediate_size", base_intermediate_size, model.intermediate_size, true);
  check("base_num_attention_heads", base_num_attention_heads, model.num_attention_heads, true);
  check("base_head_dim", base_head_dim, model.head_size(), false);
  check("base_num_hidden_layers", base_num_hidden_layers, model.num_hidden_layers, false);
  if (is_on()) {
    checks.require(model.norm_placement == NormPlacement::kPre, "model.norm_placement", enum_name(model.norm_placement),
                   "is not supported with model.mup, which is for norms before the matrices");
    checks.require(!model.norm_zero_centered, "model.norm_zero_centered", "true", "is not supported with model.mup");
    checks.require(!model.embedding_norm, "model.embedding_norm", "true", "is not supported with model.mup");
    checks.require(model.output_init == OutputInit::kSame, "model.output_init", enum_name(model.output_init),
                   "is not supported with model.mup, which scales by depth itself", "see model.mup.depth_alpha");
  }
  checks.require(depth_alpha >= 0.5 && depth_alpha <= 1, "model.mup.depth_alpha", depth_alpha, "must be from 0.5 to 1");
  if (const ModelConfig base = base_of(model); valid && is_on() && base.head_dim == 0) {
    checks.require(base.hidden_size % base.num_attention_heads == 0, "model.mup.base_num_attention_heads",
                   base.num_attention_heads, str("must divide model.mup.base_hidden_size (", base_hidden_size, ")"),
                   "change one of the two, or give model.mup.base_head_dim");
  }
  return checks.take();
}

void apply_mup(const ModelConfig& model, ParamTable& table) {
  if (!model.mup.is_on()) return;
  const ModelConfig base = base_of(model);
  for (Unit& unit : table.units) {
    for (Matrix& matrix : unit.matrices) {
      for (Param& param : matrix.parts) scale(model, base, param);
    }
  }
}

}  // namespace tokamak
