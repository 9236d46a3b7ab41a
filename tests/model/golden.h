// The golden files of tests/golden, and a model loaded with their weights.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/comm.h"
#include "formats/safetensors.h"
#include "model/transformer.h"
#include "optim/optimizer.h"
#include "support/test_data.h"

namespace tokamak {

// Reads the keys of an options struct that `json` has, and leaves the others.
struct FromJson {
  template <class T>
  void operator()(const char* name, T& value, const char* /*help*/) const {
    if (!json.contains(name) || json.at(name).is_null()) return;
    if constexpr (std::is_enum_v<T>) {
      const auto& names = enum_names(value);
      const auto found = std::find(names.begin(), names.end(), json.at(name).get<std::string>());
      TOKAMAK_CHECK(found != names.end(), name, " ", json.at(name).dump());
      value = static_cast<T>(found - names.begin());
    } else {
      value = json.at(name).get<T>();
    }
  }
  nlohmann::json json;
};

struct Golden {
  explicit Golden(const std::string& name) : file(test_data() + "/" + name + ".safetensors", Kind::kData) {
    const auto json = nlohmann::json::parse(file.metadata().at("config"));
    config.hidden_size = json.at("hidden_size");
    config.intermediate_size = json.at("intermediate_size");
    config.num_hidden_layers = json.at("num_hidden_layers");
    config.num_attention_heads = json.at("num_attention_heads");
    config.num_key_value_heads = json.at("num_key_value_heads");
    config.head_dim = json.at("head_dim");
    config.vocab_size = json.at("vocab_size");
    config.rope_theta = json.at("rope_theta");
    config.rms_norm_eps = json.at("rms_norm_eps");
    config.tie_word_embeddings = json.at("tie_word_embeddings");
    config.qkv_bias = json.value("qkv_bias", false);
    config.o_bias = json.value("o_bias", false);
    config.mlp_bias = json.value("mlp_bias", false);
    config.attn_logit_softcapping = json.value("attn_logit_softcapping", 0.0);
    config.final_logit_softcapping = json.value("final_logit_softcapping", 0.0);
    const auto qk_norm = json.value("qk_norm", nlohmann::json("none"));  // true: of each head
    if (qk_norm != "none") config.qk_norm = qk_norm == "all" ? QkNormKind::kAll : QkNormKind::kHead;
    const std::string placement = json.value("norm_placement", "pre");
    if (placement != "pre") config.norm_placement = placement == "post" ? NormPlacement::kPost : NormPlacement::kBoth;
    config.norm_zero_centered = json.value("norm_zero_centered", false);
    if (json.contains("hidden_act")) config.hidden_act = HiddenAct::kGeluTanh;
    config.scale_embeddings = json.value("scale_embeddings", false);
    config.query_pre_attn_scalar = json.value("query_pre_attn_scalar", 0.0);
    config.sliding_window = json.value("sliding_window", int64_t{0});
    config.no_rope_layers = json.value("no_rope_layers", std::vector<int64_t>{});
    for (const std::string& type : json.value("layer_types", std::vector<std::string>{}))
      config.layer_types.push_back(type == "full_attention" ? LayerType::kFull : LayerType::kSliding);
    config.rope_local_base_freq = json.value("rope_local_base_freq", 0.0);
    config.max_position_embeddings = json.at("max_position_embeddings");
    FromJson scaling{json.value("rope_scaling", nlohmann::json::object())};
    config.rope_scaling.fields(scaling);
  }

  SafetensorsFile file;
  ModelConfig config;
};

// Sequences of equal length, each its own document.
struct Sequences {
  Sequences(std::vector<int32_t> ids, std::vector<int32_t> next, int64_t length)
      : tokens(std::move(ids)), targets(std::move(next)) {
    for (size_t i = 0; i < tokens.size(); ++i)
      positions.push_back(static_cast<int32_t>(i) % static_cast<int32_t>(length));
    for (size_t i = 0; i <= tokens.size(); i += static_cast<size_t>(length))
      cu_seqlens.push_back(static_cast<int32_t>(i));
  }
  TokenBatch batch() const { return {tokens, targets, positions, cu_seqlens}; }
  // Sequences [first, first + count) of `length` tokens.
  Sequences part(int64_t first, int64_t count, int64_t length) const {
    const auto cut = [&](const std::vector<int32_t>& v) {
      return std::vector<int32_t>(v.begin() + first * length, v.begin() + (first + count) * length);
    };
    return {cut(tokens), cut(targets), length};
  }

  std::vector<int32_t> tokens, targets, positions, cu_seqlens;
};

struct SmallModelOptions {
  DType compute = DType::kF32;
  Passes passes = Passes::kForwardAndBackward;
  std::optional<KeptLayers> kept = {};  // absent: all
  int64_t max_tokens = 128;
  int64_t max_length = 64;
  int64_t cached_sequences = 0;
  double z_loss = 0;
  DType reduce_dtype = DType::kF32;
  UnitSize units = UnitSize::kLayer;
  OptimizerOptions optimizer;
};

// A whole trainable model on this rank's CPU.
class SmallModel {
 public:
  SmallModel(const ModelConfig& config, Comm& comm, const SmallModelOptions& options)
      : table(make_param_table(config, options.units)),
        backend(make_cpu_backend()),
        stream(backend.device->make_stream()),
        parameters(table, comm, backend, {.compute = options.compute, .reduce_dtype = options.reduce_dtype}, plan),
        optimizer(make_optimizer(options.optimizer, 0, parameters, plan)),
        model(config, parameters,
              {.max_tokens = options.max_tokens,
               .max_length = options.max_length,
               .cached_sequences = options.cached_sequences,
               .compute = options.compute,
               .passes = options.passes,
               .kept = options.kept ? *options.kept : all_kept(kept_tensors(config)),
               .z_loss = options.z_loss},
              plan),
        sums_slot(plan.add("sums", DType::kF64, Shape{kStepSums})),
        control_slot(plan.add("control", DType::kF32, Shape{kStepControls})),
        arena(plan, *backend.device) {
    parameters.commit(arena);
    optimizer->commit(arena);
    model.commit(arena, *stream);
    sums = arena[sums_slot];
    control = arena[control_slot];
    parameters.begin_step();
  }

  // Calls visit(name, this rank's part of `shard`, first element of that part in the weight) for every weight.
  template <class Visit>
  void for_each_part(Tensor shard, const Visit& visit) {
    for (size_t u = 0; u < table.units.size(); ++u) {
      const auto unit = static_cast<int64_t>(u);
      const int64_t slice = parameters.slice_elements(unit), begin = parameters.slice_begin(unit);
      const int64_t first = parameters.mesh().shard().rank() * slice;
      for (const FlatParam& flat : flat_params(table.units[u])) {
        const int64_t from = std::max(flat.begin, first), to = std::min(flat.end, first + slice);
        if (from < to) visit(*flat.param, shard.flat(begin + from - first, begin + to - first), from - flat.begin);
      }
    }
  }

  void load(const SafetensorsFile& file) {
    for_each_part(parameters.master(), [&](const Param& param, Tensor part, int64_t first) {
      file.read<float>(file.at(param.name), first, std::span(part.as<float>(), static_cast<size_t>(part.count())));
    });
    parameters.masters_changed(*stream);
  }

  void zero_sums() { backend.ops->fill(*stream, {.x = sums, .value = 0}); }
  double sum(StepSum which) const { return sums.as<double>()[which]; }
  float decided(StepControl which) const { return control.as<float>()[which]; }

  MemoryPlan plan;
  ParamTable table;
  Backend backend;
  std::unique_ptr<Stream> stream;
  ShardedParameters parameters;
  std::unique_ptr<Optimizer> optimizer;
  Transformer model;
  MemoryPlan::Slot sums_slot, control_slot;
  Arena arena;
  Tensor sums, control;
};

}  // namespace tokamak
