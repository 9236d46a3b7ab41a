#include "model/parameters.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/strings.h"
#include "model/flops.h"

using namespace tokamak;

namespace {

ModelConfig llama3_8b() {
  ModelConfig config;
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.vocab_size = 128256;
  return config;
}

// (part, piece) of attention, of gate and up, and of down.
constexpr std::pair<size_t, int> kPieces[] = {{0, 0}, {1, 0}, {1, 1}};

// A tensor for each matrix of a unit, with its shape. The address, never used, says which matrix it is.
struct Unallocated {
  explicit Unallocated(const Unit& unit_of) : unit(unit_of), memory(unit.matrices.size()) {
    for (size_t m = 0; m < memory.size(); ++m) {
      tensors.emplace_back(&memory[m], DType::kF32, unit.matrices[m].shape());
    }
  }
  // "" where the tensor is empty.
  std::string name_of(const Tensor& tensor) const {
    if (!tensor) return "";
    const Matrix& matrix = unit.matrices.at(static_cast<size_t>(tensor.as<float>() - memory.data()));
    CHECK(tensor.shape() == matrix.shape());
    return matrix.name;
  }
  bool has(const Tensor& tensor) const {
    return tensor && memory.data() <= tensor.as<float>() && tensor.as<float>() < memory.data() + memory.size();
  }
  const Unit& unit;
  std::vector<float> memory;
  std::vector<Tensor> tensors;
};

}  // namespace

TEST_CASE("Llama 3 8B has the published number of parameters") {
  CHECK(model_size(llama3_8b()).parameters == 8'030'261'248);
}

TEST_CASE("families have as many parameters as transformers' default models") {
  ModelConfig mistral = llama3_8b();
  mistral.vocab_size = 32000;
  mistral.sliding_window = 4096;
  CHECK(model_size(mistral).parameters == 7241732096);
  ModelConfig smollm3{.hidden_size = 2048,
                      .intermediate_size = 11008,
                      .num_hidden_layers = 36,
                      .num_attention_heads = 16,
                      .num_key_value_heads = 4,
                      .vocab_size = 128256,
                      .no_rope_layers = {1, 1, 1, 0},
                      .tie_word_embeddings = true};
  CHECK(model_size(smollm3).parameters == 3075098624);
  ModelConfig olmo2{.hidden_size = 4096,
                    .intermediate_size = 11008,
                    .num_hidden_layers = 32,
                    .num_attention_heads = 32,
                    .vocab_size = 50304,
                    .norm_placement = NormPlacement::kPost,
                    .qk_norm = QkNormKind::kAll};
  CHECK(model_size(olmo2).parameters == 6888624128);
  ModelConfig gemma3{.hidden_size = 2304,
                     .intermediate_size = 9216,
                     .num_hidden_layers = 26,
                     .num_attention_heads = 8,
                     .num_key_value_heads = 4,
                     .head_dim = 256,
                     .vocab_size = 262208,
                     .norm_placement = NormPlacement::kBoth,
                     .qk_norm = QkNormKind::kHead,
                     .tie_word_embeddings = true};
  CHECK(model_size(gemma3).parameters == 2628658432);
  ModelConfig gemma2 = gemma3;
  gemma2.vocab_size = 256000;
  gemma2.qk_norm = QkNormKind::kNone;
  CHECK(model_size(gemma2).parameters == 2614341888);
}

TEST_CASE("with output_init depth, matrices whose results join the residual stream begin smaller") {
  ModelConfig config = llama3_8b();
  config.output_init = OutputInit::kDepth;
  for (const Unit& unit : make_param_table(config).units) {
    for (const Matrix& matrix : unit.matrices) {
      for (const Param& param : matrix.parts) {
        if (param.shape.rank() != 2) continue;
        const bool joins = param.name.ends_with("o_proj.weight") || param.name.ends_with("down_proj.weight");
        CHECK(param.init_std == Approx(joins ? 0.02 / 8 : 0.02));  // of 32 layers: sqrt(64)
      }
    }
  }
}

TEST_CASE("a tied head adds no parameters, and its matrix counts as multiplied, not as looked up") {
  ModelConfig config = llama3_8b();
  const double untied = token_flops(config).full(8192);
  config.tie_word_embeddings = true;
  CHECK(model_size(config).parameters == 8'030'261'248 - 128256ll * 4096);
  CHECK(token_flops(config).full(8192) == untied);
}

TEST_CASE("FLOPs per token follow the two conventions") {
  const double matrices = 6.0 * (8'030'261'248.0 - 128256.0 * 4096);
  const double attention = 12.0 * 32 * 4096 * 8192;
  CHECK(token_flops(llama3_8b()).full(8192) == Approx(matrices + attention));
  CHECK(token_flops(llama3_8b()).causal(8192) == Approx(matrices + attention / 2));
}

TEST_CASE("a token attends to those before it in its document, as far as its layers' windows reach") {
  ModelConfig config = llama3_8b();
  const std::vector<int32_t> documents = {0, 10, 10, 13};
  const auto attended = [&] { return Attended(LayerTable(config)); };
  CHECK(attended().in_documents(documents) == Approx((55.0 + 6) / 13));
  config.sliding_window = 4;
  CHECK(attended().in_documents(documents) == Approx((1 + 2 + 3 + 7 * 4 + 6.0) / 13));
  CHECK(attended().in_sequences(10) == Approx(3.4));
  CHECK(attended().full(10) == 4);
  CHECK(attended().full(3) == 3);
  CHECK(attended().causal(10) == Approx(4 - 16.0 / 20));
  CHECK(attended().causal(3) == 1.5);
  config.layer_types = {LayerType::kSliding, LayerType::kSliding, LayerType::kSliding, LayerType::kFull};
  CHECK(attended().in_sequences(10) == Approx((3 * 3.4 + 5.5) / 4));
  CHECK(token_flops(config).full(8192) == Approx(token_flops(config).weights + 12.0 * 4096 * (24 * 4 + 8 * 8192)));

  // Windows of OLMo 3 7B.
  config.sliding_window = 4096;
  CHECK(attended().in_sequences(8192) == Approx((3 * 3072.25 + 4096.5) / 4));
}

TEST_CASE("every weight of the table is named once, with transformers' name and shape") {
  ModelConfig config = llama3_8b();
  config.num_hidden_layers = 2;
  const ParamTable table = make_param_table(config);
  std::map<std::string, Shape> shapes;
  for (const Unit& unit : table.units) {
    for (const Matrix& matrix : unit.matrices) {
      for (const Param& part : matrix.parts) CHECK(shapes.emplace(part.name, part.shape).second);
    }
  }
  CHECK(shapes.size() == 2 * 9 + 3);
  CHECK(shapes.at("model.embed_tokens.weight") == Shape{128256, 4096});
  CHECK(shapes.at("model.layers.1.self_attn.k_proj.weight") == Shape{1024, 4096});
  CHECK(shapes.at("model.layers.0.mlp.down_proj.weight") == Shape{4096, 14336});
  CHECK(shapes.at("model.layers.0.input_layernorm.weight") == Shape{4096});
  CHECK(shapes.at("lm_head.weight") == Shape{128256, 4096});
}

TEST_CASE("the index of weights finds each unit and each of a layer's weights") {
  for (const bool tied : {false, true}) {
    ModelConfig config = llama3_8b();
    config.num_hidden_layers = 3;
    config.tie_word_embeddings = tied;
    const ParamTable table = make_param_table(config);
    const WeightIndex index(LayerTable(config), table);
    const auto name = [&](int64_t unit) { return table.units.at(static_cast<size_t>(unit)).name; };
    CHECK(name(index.embedding()) == "embedding");
    CHECK(name(index.layer(2)) == "layer.2");
    CHECK(name(index.head()) == (tied ? "embedding" : "head"));
    CHECK(name(index.norms()) == "norms");
    CHECK(index.tied() == tied);
    const Unallocated layer(table.units.at(static_cast<size_t>(index.layer(2))));
    const Unallocated norms(table.units.at(static_cast<size_t>(index.norms())));
    for (const auto& [part, piece] : kPieces) CHECK(index.layer(2, part, piece) == index.layer(2));
    const auto name_at = [&](size_t part, int id) {
      const Tensor tensor = index.find(2, part, id, layer.tensors, norms.tensors);
      return layer.has(tensor) ? layer.name_of(tensor) : norms.name_of(tensor);
    };
    CHECK(name_at(0, 0) == "qkv");
    CHECK(name_at(0, 1) == "o");
    CHECK(name_at(0, 2) == "model.layers.2.input_layernorm.weight");
    CHECK(name_at(1, 0) == "gate_up");
    CHECK(name_at(1, 1) == "down");
    CHECK(name_at(1, 2) == "model.layers.2.post_attention_layernorm.weight");
    CHECK(norms.name_of(index.final_norm(norms.tensors)) == "model.norm.weight");
  }
}

TEST_CASE("units below a layer hold the same weights: qkv and o, gate and up, down") {
  ModelConfig config = llama3_8b();
  config.num_hidden_layers = 2;
  const ParamTable whole = make_param_table(config), table = make_param_table(config, UnitSize::kProjection);
  CHECK(table.count() == whole.count());
  CHECK(table.units.size() == whole.units.size() + 2 * 2);
  const WeightIndex index(LayerTable(config), table);
  const auto unit = [&](size_t part, int piece) -> const Unit& {
    return table.units.at(static_cast<size_t>(index.layer(1, part, piece)));
  };
  CHECK(unit(0, 0).name == "layer.1.attention");
  CHECK(unit(1, 0).name == "layer.1.gate_up");
  CHECK(unit(1, 1).name == "layer.1.down");
  const Unallocated norms(table.units.back()), attention(unit(0, 0)), gate_up(unit(1, 0)), down(unit(1, 1));
  const auto name_in = [&](const Unallocated& found_in, size_t part, int id) {
    return found_in.name_of(index.find(1, part, id, found_in.tensors, norms.tensors));
  };
  CHECK(name_in(attention, 0, 0) == "qkv");
  CHECK(name_in(attention, 0, 1) == "o");
  CHECK(name_in(gate_up, 1, 0) == "gate_up");
  CHECK(name_in(down, 1, 1) == "down");
}

TEST_CASE("weights of norms begin where the norm multiplies by 1") {
  ModelConfig config = llama3_8b();
  config.num_hidden_layers = 1;
  config.qk_norm = QkNormKind::kHead;
  config.norm_placement = NormPlacement::kBoth;
  for (const bool zero_centered : {false, true}) {
    config.norm_zero_centered = zero_centered;
    int64_t norms = 0;
    for (const Unit& unit : make_param_table(config).units) {
      for (const Matrix& matrix : unit.matrices) {
        for (const Param& param : matrix.parts) {
          if (param.shape.rank() != 1) continue;
          ++norms;
          CHECK(param.init_mean == (zero_centered ? 0 : 1));
        }
      }
    }
    CHECK(norms == 7);
  }
}

TEST_CASE("norms have transformers' names at each placement, and with qk_norm: all the width of all heads") {
  ModelConfig config = llama3_8b();
  config.num_hidden_layers = 1;
  config.qk_norm = QkNormKind::kAll;
  const auto names = [&](NormPlacement placement) {
    config.norm_placement = placement;
    std::map<std::string, int64_t> widths;
    for (const Unit& unit : make_param_table(config).units) {
      for (const Matrix& matrix : unit.matrices) {
        for (const Param& param : matrix.parts) {
          if (param.shape.rank() == 1) widths[param.name] = param.shape[0];
        }
      }
    }
    return widths;
  };
  using Widths = std::map<std::string, int64_t>;
  const std::string layer = "model.layers.0.";
  const Widths always = {{"model.norm.weight", 4096},
                         {layer + "self_attn.q_norm.weight", 4096},
                         {layer + "self_attn.k_norm.weight", 1024}};
  const auto with = [&](std::initializer_list<const char*> norms) {
    Widths widths = always;
    for (const char* norm : norms) widths[layer + norm + ".weight"] = 4096;
    return widths;
  };
  CHECK(names(NormPlacement::kPre) == with({"input_layernorm", "post_attention_layernorm"}));
  CHECK(names(NormPlacement::kPost) == with({"post_attention_layernorm", "post_feedforward_layernorm"}));
  CHECK(names(NormPlacement::kBoth) == with({"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                                             "post_feedforward_layernorm"}));
}

TEST_CASE("biases of all projections, and a norm after the embedding, have transformers' kind of names") {
  ModelConfig config = llama3_8b();
  config.num_hidden_layers = 1;
  config.o_bias = config.mlp_bias = config.embedding_norm = true;
  std::map<std::string, int64_t> widths;
  const ParamTable table = make_param_table(config);
  for (const Matrix& matrix : table.units.back().matrices) {
    for (const Param& param : matrix.parts) {
      widths[param.name] = param.shape[0];
      CHECK(param.decay == Decay::kNo);
      CHECK(param.init_mean == (param.name.ends_with("bias") ? 0 : 1));
    }
  }
  const std::string layer = "model.layers.0.";
  CHECK(widths == std::map<std::string, int64_t>{{layer + "input_layernorm.weight", 4096},
                                                 {layer + "post_attention_layernorm.weight", 4096},
                                                 {layer + "self_attn.o_proj.bias", 4096},
                                                 {layer + "mlp.gate_proj.bias", 14336},
                                                 {layer + "mlp.up_proj.bias", 14336},
                                                 {layer + "mlp.down_proj.bias", 4096},
                                                 {"model.embed_norm.weight", 4096},
                                                 {"model.norm.weight", 4096}});
}

TEST_CASE("biases and norms of heads lie among the norms, undecayed, with transformers' names, shapes and beginnings") {
  for (const bool bias : {false, true}) {
    for (const bool norm : {false, true}) {
      ModelConfig config = llama3_8b();
      const int64_t plain = model_size(config).parameters;
      config.num_hidden_layers = 3;
      config.qkv_bias = bias;
      if (norm) config.qk_norm = QkNormKind::kHead;
      const ParamTable table = make_param_table(config);
      const WeightIndex index(LayerTable(config), table);
      const Unit& norms = table.units.at(static_cast<size_t>(index.norms()));
      const Unallocated vectors(norms);
      const auto vector = [&](size_t part, int id) { return index.find(1, part, id, {}, vectors.tensors); };
      const auto name_at = [&](size_t part, int id) { return vectors.name_of(vector(part, id)); };
      REQUIRE(norms.matrices.size() == static_cast<size_t>(3 * (2 + (bias ? 1 : 0) + (norm ? 2 : 0)) + 1));
      CHECK(name_at(0, 2) == "model.layers.1.input_layernorm.weight");
      CHECK(name_at(1, 2) == "model.layers.1.post_attention_layernorm.weight");
      CHECK(name_at(0, 3) == (bias ? "model.layers.1.self_attn.qkv_bias" : ""));
      CHECK(name_at(0, 4) == (norm ? "model.layers.1.self_attn.q_norm.weight" : ""));
      CHECK(name_at(0, 5) == (norm ? "model.layers.1.self_attn.k_norm.weight" : ""));
      for (const Matrix& matrix : norms.matrices) {
        for (const Param& part : matrix.parts) CHECK((part.decay == Decay::kNo && part.init_std == 0));
      }
      if (bias) {
        const Matrix& qkv = norms.matrices.at(static_cast<size_t>(vector(0, 3).as<float>() - vectors.memory.data()));
        REQUIRE(qkv.parts.size() == 3);
        const char* names[] = {"q_proj", "k_proj", "v_proj"};
        for (size_t i = 0; i < 3; ++i) {
          CHECK(qkv.parts[i].name == str("model.layers.1.self_attn.", names[i], ".bias"));
          CHECK(qkv.parts[i].shape == Shape{i == 0 ? 4096 : 1024});
          CHECK(qkv.parts[i].init_mean == 0);
        }
        CHECK(qkv.shape() == Shape{6144});
      }
      if (norm) {
        const Param& q =
            norms.matrices.at(static_cast<size_t>(vector(0, 4).as<float>() - vectors.memory.data())).parts[0];
        const Param& k =
            norms.matrices.at(static_cast<size_t>(vector(0, 5).as<float>() - vectors.memory.data())).parts[0];
        CHECK((q.name == "model.layers.1.self_attn.q_norm.weight" && q.shape == Shape{128} && q.init_mean == 1));
        CHECK((k.name == "model.layers.1.self_attn.k_norm.weight" && k.shape == Shape{128} && k.init_mean == 1));
      }
      config.num_hidden_layers = 32;
      CHECK(model_size(config).parameters - plain == 32 * ((bias ? 6144 : 0) + (norm ? 2 * 128 : 0)));
    }
  }
}
