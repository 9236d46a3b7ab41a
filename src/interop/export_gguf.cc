#include "interop/export_gguf.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/staged.h"
#include "formats/gguf.h"
#include "interop/export_hf.h"
#include "interop/gguf_tokenizer.h"
#include "interop/hf_architecture.h"
#include "model/rope_table.h"

namespace tokamak {

namespace {

constexpr const char* kRopeFactors = "rope_freqs.weight";

struct NamePart {
  const char* theirs;
  const char* gguf;
};
constexpr std::array<NamePart, 17> kLayerNames = {{{"input_layernorm.weight", "attn_norm.weight"},
                                                   {"self_attn.q_proj.weight", "attn_q.weight"},
                                                   {"self_attn.k_proj.weight", "attn_k.weight"},
                                                   {"self_attn.v_proj.weight", "attn_v.weight"},
                                                   {"self_attn.q_proj.bias", "attn_q.bias"},
                                                   {"self_attn.k_proj.bias", "attn_k.bias"},
                                                   {"self_attn.v_proj.bias", "attn_v.bias"},
                                                   {"self_attn.o_proj.bias", "attn_output.bias"},
                                                   {"mlp.gate_proj.bias", "ffn_gate.bias"},
                                                   {"mlp.up_proj.bias", "ffn_up.bias"},
                                                   {"mlp.down_proj.bias", "ffn_down.bias"},
                                                   {"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                                   {"self_attn.k_norm.weight", "attn_k_norm.weight"},
                                                   {"self_attn.o_proj.weight", "attn_output.weight"},
                                                   {"mlp.gate_proj.weight", "ffn_gate.weight"},
                                                   {"mlp.up_proj.weight", "ffn_up.weight"},
                                                   {"mlp.down_proj.weight", "ffn_down.weight"}}};
// With norms before attention and the feed-forward alone, "post attention" is the one before the feed-forward.
constexpr std::array<NamePart, 1> kPreNames = {{{"post_attention_layernorm.weight", "ffn_norm.weight"}}};
constexpr std::array<NamePart, 3> kPostNames = {{{"post_attention_layernorm.weight", "post_attention_norm.weight"},
                                                 {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
                                                 {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"}}};

std::string gguf_name(const ModelConfig& model, const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  if (starts_with(name, kLayers)) {
    const size_t dot = name.find('.', kLayers.size());
    const std::span<const NamePart> norms =
        model.has_post_norms() ? std::span<const NamePart>(kPostNames) : std::span<const NamePart>(kPreNames);
    for (const std::span<const NamePart> parts : {std::span<const NamePart>(kLayerNames), norms}) {
      for (const NamePart& part : parts) {
        if (name.substr(dot + 1) == part.theirs) {
          return str("blk.", name.substr(kLayers.size(), dot - kLayers.size()), ".", part.gguf);
        }
      }
    }
  }
  TOKAMAK_UNREACHABLE("no name in GGUF for ", name);
}

std::string architecture_of(const ModelConfig& model) {
  const std::string type = hf_architecture(model).model_type;
  if (type == "mistral" || type == "ministral") return "llama";
  if (type == "gemma3_text") return "gemma3";
  return type == "olmo3" ? "olmo2" : type;
}

bool is_gemma(const ModelConfig& model) { return hf_architecture(model).scale_embeddings; }

// They interleave the rows of q and k, in weights and biases, and alone read the tensor rope_freqs.
bool is_llama_like(const ModelConfig& model) {
  const std::string architecture = architecture_of(model);
  return architecture == "llama" || architecture == "smollm3";
}

bool is_interleaved(const ModelConfig& model, const std::string& name) {
  const bool q_or_k =
      name.find(".self_attn.q_proj.") != std::string::npos || name.find(".self_attn.k_proj.") != std::string::npos;
  return q_or_k && is_llama_like(model);
}

void refuse_scaling(const std::string& what) {
  fail(Kind::kConfig, "GGUF has no place for model.rope_scaling: " + what, "export to hf instead");
}

void add_rope(const ModelConfig& model, const std::string& prefix, GgufKeys& keys) {
  const RopeScaling& scaling = model.rope_scaling;
  keys.emplace_back(prefix + "rope.dimension_count", static_cast<uint32_t>(model.head_size()));
  keys.emplace_back(prefix + "rope.freq_base", static_cast<float>(model.rope_theta));
  switch (scaling.rope_type) {
    case RopeType::kDefault:
    case RopeType::kDynamic:  // no effect within context_length
      return;
    case RopeType::kLlama3:  // the tensor rope_freqs expresses it
      if (!is_llama_like(model)) refuse_scaling("llama3 of the architecture " + architecture_of(model));
      return;
    case RopeType::kLinear:
      keys.emplace_back(prefix + "rope.scaling.type", std::string("linear"));
      keys.emplace_back(prefix + "rope.scaling.factor", static_cast<float>(scaling.factor));
      return;
    case RopeType::kYarn:
      if (architecture_of(model) == "gemma3") refuse_scaling("yarn of the architecture gemma3");
      // llama.cpp computes the rest itself, with the paper's defaults.
      if (scaling.fast_turns() != 32 || scaling.slow_turns() != 1 || scaling.attention_factor != 0 ||
          scaling.mscale != 0 || !scaling.truncate) {
        refuse_scaling("yarn with other values than the defaults of its betas, attention_factor, mscale or truncate");
      }
      keys.emplace_back(prefix + "rope.scaling.type", std::string("yarn"));
      keys.emplace_back(prefix + "rope.scaling.factor",
                        static_cast<float>(scaling.extension(model.max_position_embeddings)));
      keys.emplace_back(prefix + "rope.scaling.original_context_length",
                        static_cast<uint32_t>(scaling.original_max_position_embeddings));
      return;
  }
}

// The divisors of the frequencies in llama.cpp.   (D/2)
std::vector<float> rope_factors(const ModelConfig& model) {
  ModelConfig plain = model;
  plain.rope_scaling = {};
  const std::vector<double> base = rope_frequencies(plain, 1).w;
  const std::vector<double> scaled = rope_frequencies(model, 1).w;
  std::vector<float> factors;
  for (size_t i = 0; i < base.size(); ++i) factors.push_back(static_cast<float>(base[i] / scaled[i]));
  return factors;
}

struct GgufWeight {
  GgufTensor tensor;
  std::string source;  // Hugging Face's name; "": the RoPE factors
  WeightType type;
};

void refuse_layers(const std::string& what) { fail(Kind::kConfig, what, "export to hf instead"); }

// The n of a model whose every n-th layer is full and whose others slide.
int64_t period_of_windows(const ModelConfig& model) {
  int64_t period = 0;
  while (period < model.num_hidden_layers && model.slides(period)) ++period;
  ++period;
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    if (model.slides(l) != ((l + 1) % period != 0))
      refuse_layers(
          str("llama.cpp wants the same number of sliding layers before each full one; layer ", l, " differs"));
  }
  return period;
}

bool has_windows(const ModelConfig& model) {
  return hf_architecture(model).full_every > 0;  // olmo2, gemma2 and gemma3
}

// Sliding layers have plain rotary embeddings, with olmo2 of the same theta.
void add_windows(const ModelConfig& model, const std::string& prefix, GgufKeys& keys) {
  if (!has_windows(model)) return;
  const double local = model.rope_local_base_freq > 0 ? model.rope_local_base_freq : model.rope_theta;
  const std::string architecture = architecture_of(model);
  if (is_gemma(model) && model.sliding_window == 0)
    refuse_layers(str("llama.cpp's ", architecture, " has windows; model.sliding_window is 0"));
  if (architecture == "gemma2" && period_of_windows(model) != 2)
    refuse_layers(str("llama.cpp's gemma2 has a full layer after each sliding one; model.layer_types has one after ",
                      period_of_windows(model) - 1));
  if (architecture == "gemma3") {
    keys.emplace_back(prefix + "rope.freq_base_swa", static_cast<float>(local));
  } else if (local != model.rope_theta) {
    refuse_layers(str("llama.cpp's olmo2 has one theta; model.rope_theta is ", model.rope_theta,
                      ", model.rope_local_base_freq ", model.rope_local_base_freq));
  }
  keys.emplace_back(prefix + "attention.sliding_window", static_cast<uint32_t>(model.sliding_window));
  keys.emplace_back(prefix + "attention.sliding_window_pattern", static_cast<uint32_t>(period_of_windows(model)));
}

// llama.cpp's code decides what differs between the layers of the other architectures.
void check_layers(const ModelConfig& model) {
  if (has_windows(model)) return;
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    if (model.slides(l) && model.sliding_window < model.max_position_embeddings) {
      fail(Kind::kConfig,
           str("llama.cpp ignores the window of a ", hf_architecture(model).name, ": model.sliding_window is ",
               model.sliding_window, ", model.max_position_embeddings ", model.max_position_embeddings),
           str("export to hf instead, or lower max_position_embeddings to ", model.sliding_window));
    }
    if (hf_architecture(model).no_rope_layers && model.rotates(l) != ((l + 1) % 4 != 0)) {
      fail(Kind::kConfig, str("llama.cpp's smollm3 has no rotary embeddings in every 4th layer; layer ", l, " differs"),
           "export to hf instead");
    }
  }
}

// llama.cpp's code decides the scale of attention, and gemma3 has no caps.
void check_gemma(const ModelConfig& model) {
  const bool second = architecture_of(model) == "gemma2";
  const auto refuse = [&](const std::string& what) {
    refuse_layers(str("llama.cpp's ", architecture_of(model), what));
  };
  if (!model.tie_word_embeddings) refuse(" has a tied head; model.tie_word_embeddings is false");
  const bool caps = second ? model.attn_logit_softcapping > 0 && model.final_logit_softcapping > 0
                           : model.final_logit_softcapping == 0;
  if (!caps) {
    refuse(str(second ? " has both caps" : " has no caps", "; model.attn_logit_softcapping is ",
               model.attn_logit_softcapping, ", model.final_logit_softcapping ", model.final_logit_softcapping));
  }
  // The models of 46 and 62 layers are the ones whose scale is not that of their heads.
  const int64_t theirs =
      model.num_hidden_layers == (second ? 46 : 62) ? model.hidden_size / model.num_attention_heads : model.head_size();
  const double ours = model.query_pre_attn_scalar > 0 ? model.query_pre_attn_scalar : double(model.head_size());
  if (ours != double(theirs))
    refuse(str(" divides by the root of ", theirs, "; model.query_pre_attn_scalar is ", ours));
}

GgufKeys gguf_keys(const ExportSource& source, const ExportOptions& options) {
  const ModelConfig& model = source.config.model;
  const std::string architecture = architecture_of(model);
  check_layers(model);
  if (is_gemma(model)) check_gemma(model);
  if ((model.o_bias || model.mlp_bias) && architecture != "llama") {
    refuse_layers(str("llama.cpp's ", architecture, " has no biases; model.o_bias is ", model.o_bias,
                      ", model.mlp_bias ", model.mlp_bias));
  }
  if (architecture == "olmo2" && model.tie_word_embeddings) {
    fail(Kind::kConfig, "llama.cpp's olmo2 needs a head of its own; model.tie_word_embeddings is true",
         "export to hf instead");
  }
  if ((architecture == "qwen2" || architecture == "olmo2") && model.q_width() != model.hidden_size) {
    fail(Kind::kConfig,
         str("llama.cpp's ", architecture, " has heads of hidden_size / num_attention_heads (", model.hidden_size,
             " / ", model.num_attention_heads, "), this model's head_dim is ", model.head_size()),
         "export to hf instead");
  }
  const std::string prefix = architecture + ".";
  GgufKeys keys;
  const auto count = [&](const std::string& name, int64_t value) {
    keys.emplace_back(prefix + name, static_cast<uint32_t>(value));
  };
  keys.emplace_back("general.architecture", architecture);
  keys.emplace_back("general.type", std::string("model"));
  keys.emplace_back("general.name", source.config.run.name);
  keys.emplace_back("general.file_type", format_of(options.type).gguf_file_type);
  count("vocab_size", model.vocab_size);
  count("context_length", model.max_position_embeddings);
  count("embedding_length", model.hidden_size);
  count("block_count", model.num_hidden_layers);
  count("feed_forward_length", model.intermediate_size);
  count("attention.head_count", model.num_attention_heads);
  count("attention.head_count_kv", model.kv_heads());
  count("attention.key_length", model.head_size());
  count("attention.value_length", model.head_size());
  keys.emplace_back(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(model.rms_norm_eps));
  add_rope(model, prefix, keys);
  add_windows(model, prefix, keys);
  if (architecture == "gemma2") {
    keys.emplace_back(prefix + "attn_logit_softcapping", static_cast<float>(model.attn_logit_softcapping));
    keys.emplace_back(prefix + "final_logit_softcapping", static_cast<float>(model.final_logit_softcapping));
  }
  add_gguf_tokenizer(source, options.add_bos, keys);
  return keys;
}

std::vector<GgufWeight> gguf_weights(const ModelConfig& model, WeightType type) {
  std::vector<GgufWeight> weights;
  if (model.rope_scaling.rope_type == RopeType::kLlama3) {
    weights.push_back({{kRopeFactors, {model.head_size() / 2}, GgufType::kF32}, "", WeightType::kF32});
  }
  for (const SafetensorsEntry& entry : hf_tensors(model, type)) {
    const WeightType stored = entry.shape.size() == 1 ? WeightType::kF32 : type;
    weights.push_back({{gguf_name(model, entry.name), entry.shape, format_of(stored).gguf}, entry.name, stored});
  }
  return weights;
}

}  // namespace

int64_t half_split_row(int64_t row, int64_t head_size) {
  const int64_t head = row / head_size, in_head = row % head_size;
  return head * head_size + in_head % 2 * (head_size / 2) + in_head / 2;
}

ExportReport export_gguf(ExportSource& source, const ExportOptions& options, const std::string& out,
                         const Progress& progress) {
  const ModelConfig& model = source.config.model;
  const GgufKeys keys = gguf_keys(source, options);
  const std::vector<GgufWeight> weights = gguf_weights(model, options.type);
  std::vector<GgufTensor> tensors;
  int64_t total = 0;
  for (const GgufWeight& weight : weights) {
    tensors.push_back(weight.tensor);
    total += weight.tensor.bytes();
  }
  StagedOutput staged(out, StagedOutput::What::kFile, Kind::kCheckpoint);
  GgufWriter writer(staged.staging(), keys, tensors, Kind::kCheckpoint);
  WeightStream stream(source.weights(), progress, total);
  const WeightStream::Sink sink = [&](std::span<const std::byte> bytes) { writer.write(bytes); };
  const RowOrder interleaved = [&](int64_t row) { return half_split_row(row, model.head_size()); };
  for (const GgufWeight& weight : weights) {
    const int64_t rows = weight.tensor.shape[0];
    const bool is_norm = weight.source.find("norm") != std::string::npos;
    if (is_norm && model.norm_zero_centered) {
      stream.copy(weight.source, weight.tensor.count(), weight.type, [&](std::span<const std::byte> bytes) {
        std::vector<float> norms(bytes.size() / sizeof(float));  // one-dimensional weights are f32
        std::memcpy(norms.data(), bytes.data(), bytes.size());
        for (float& norm : norms) norm += 1;
        writer.write(std::as_bytes(std::span(norms)));
      });
    } else if (weight.source.empty()) {
      const std::vector<float> factors = rope_factors(model);
      writer.write(std::as_bytes(std::span(factors)));
    } else if (is_interleaved(model, weight.source)) {
      stream.copy_rows(weight.source, rows, weight.tensor.count() / rows, interleaved, weight.type, sink);
    } else {
      stream.copy(weight.source, weight.tensor.count(), weight.type, sink);
    }
  }
  const int64_t bytes = writer.finish();
  staged.commit();
  return {std::ssize(tensors), 1, bytes};
}

}  // namespace tokamak
