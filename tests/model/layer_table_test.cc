// A model of two kinds of layers, one of which only this test defines: weights, FLOPs, memory, recompute and
// gradients follow from the tables of its parts.
#include "model/layer_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "model/flops.h"
#include "model/golden.h"
#include "model/toy_layer.h"
#include "support/kept.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

constexpr int64_t kLayers = 4;  // decoder, toy, decoder, toy

ModelConfig mixed_config() {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = kLayers;
  config.pattern = {&kDecoderLayer, &kToyLayer};
  return config;
}

ModelConfig plain_config() {
  ModelConfig config = mixed_config();
  config.pattern = {&kDecoderLayer};
  return config;
}

Sequences batch_of(const ModelConfig& config) {
  std::mt19937 random(5);
  std::vector<int32_t> ids(3 * 16 + 1);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab_size));
  return {{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}, 16};
}

std::vector<float> gradients_of(SmallModel& small, const Sequences& sequences) {
  small.parameters.initialize(1, *small.stream);
  small.parameters.begin_step();
  small.zero_sums();
  small.model.forward_backward(*small.stream, sequences.batch(), small.sums);
  const Tensor gradients = small.parameters.gradients();
  return {gradients.as<float>(), gradients.as<float>() + gradients.count()};
}

// Each weight that `wants` its name is moved along its gradient. Returns their number.
int check_gradients(const ModelConfig& config, const std::function<bool(const std::string&)>& wants) {
  const auto comm = make_single_comm();
  SmallModel small(config, *comm, {});
  const Sequences sequences = batch_of(config);
  const std::vector<float> gradients = gradients_of(small, sequences);
  const auto loss = [&] {
    small.parameters.masters_changed(*small.stream);
    small.zero_sums();
    small.model.evaluate(*small.stream, sequences.batch(), small.sums);
    return small.sum(kSumLoss);
  };
  int checked = 0;
  small.for_each_part(small.parameters.master(), [&](const Param& param, Tensor part, int64_t) {
    if (!wants(param.name)) return;
    // Along the gradient the loss changes by the square of its length.
    const int64_t first = part.as<float>() - small.parameters.master().as<float>();
    double squares = 0;
    for (int64_t i = 0; i < part.count(); ++i) {
      const double g = gradients[static_cast<size_t>(first + i)];
      squares += g * g;
    }
    REQUIRE(squares > 0);
    const double step = 0.02 / std::sqrt(squares);
    const auto move = [&](double by) {
      for (int64_t i = 0; i < part.count(); ++i) {
        part.as<float>()[i] += static_cast<float>(by * gradients[static_cast<size_t>(first + i)]);
      }
    };
    move(step);
    const double above = loss();
    move(-2 * step);
    const double below = loss();
    move(step);
    INFO(param.name);
    CHECK((above - below) / (2 * step) == Approx(squares).epsilon(0.01));
    ++checked;
  });
  return checked;
}

}  // namespace

TEST_CASE("a decoder layer may keep seven tensors; those that spare an operation of the forward pass come first") {
  const std::vector<KeptTensor> tensors = kept_tensors(plain_config());
  REQUIRE(tensors.size() == kDecoderKept);
  for (size_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i].name == kDecoderKeptNames[i]);
    CHECK(tensors[i].most == kLayers - 1);
    CHECK((tensors[i].row.spares == KeptRow::Spares::kForward) == (i <= kGateUp));
  }
}

TEST_CASE(
    "with a norm after a branch its input may be kept, and the sum of branch and residual stream spares no GEMM") {
  ModelConfig config = plain_config();
  const auto names = [&](KeptRow::Spares spares) {
    std::vector<std::string> found;
    for (const KeptTensor& tensor : kept_tensors(config)) {
      if (tensor.row.spares == spares) found.push_back(tensor.name);
    }
    return found;
  };
  using enum KeptRow::Spares;
  using Names = std::vector<std::string>;
  config.norm_placement = NormPlacement::kPost;
  CHECK((names(kForward) == Names{"qkv", "attention", "o", "gate_up", "down"}));
  CHECK((names(kStore) == Names{"mid", "swiglu"}));
  config.norm_placement = NormPlacement::kBoth;
  CHECK((names(kForward) == Names{"qkv", "attention", "o", "gate_up", "down"}));
  CHECK((names(kStore) == Names{"mid", "norm1", "norm2", "swiglu"}));
}

TEST_CASE("a weight and an activation of a new kind of layer are in the list of weights, in FLOPs and in memory") {
  const ModelConfig config = mixed_config(), plain = plain_config();
  const int64_t hidden = config.hidden_size;
  std::map<std::string, Shape> shapes;
  for (const Unit& unit : make_param_table(config).units) {
    for (const Matrix& matrix : unit.matrices) {
      for (const Param& part : matrix.parts) shapes.emplace(part.name, part.shape);
    }
  }
  CHECK((shapes.at("model.layers.1.mlp.extra_proj.weight") == Shape{hidden, hidden}));
  CHECK(shapes.count("model.layers.2.mlp.extra_proj.weight") == 0);
  CHECK(model_size(config).parameters == model_size(plain).parameters + 2 * hidden * hidden);
  CHECK(token_flops(config).full(16) == token_flops(plain).full(16) + 6.0 * static_cast<double>(2 * hidden * hidden));

  const LayerTable layers(config);
  std::vector<std::string> names;
  for (const KeptTensor& tensor : layers.kept()) {
    names.push_back(tensor.name);
    CHECK(tensor.most == kLayers / 2 - 1);
  }
  CHECK((names == std::vector<std::string>{"full.qkv", "full.attention", "full.mid", "full.gate_up", "toy.qkv",
                                           "toy.attention", "toy.mid", "toy.extra", "toy.gate_up", "full.norm1",
                                           "full.norm2", "full.swiglu", "toy.norm1", "toy.norm2", "toy.swiglu"}));
  MemoryPlan plan;
  const ActivationPlan activations(layers, hidden, 100, 0, DType::kBF16, Passes::kForwardAndBackward, {}, plan);
  std::map<std::string, int64_t> buffers;
  const MemoryPlan::Group group = plan.groups().at(0);
  for (const auto& member : group.members) buffers[member.name] = member.buffers;
  CHECK(buffers.at("layer.* extra") == 1);    // shared by the toy layers
  CHECK(buffers.at("layer.* gate_up") == 2);  // one for each kind

  const size_t extra = static_cast<size_t>(std::find(names.begin(), names.end(), "toy.extra") - names.begin());
  const KeepCost cost = keep_costs(config, 100, 50, DType::kBF16)[extra];
  CHECK(cost.spared == 100 * 2.0 * static_cast<double>(hidden * hidden));
  CHECK(cost.bytes >= 100 * (2 * hidden + 4));
}

TEST_CASE("gradients of a new kind's weights are the differences of the loss") {
  const int checked = check_gradients(mixed_config(), [](const std::string& name) {
    return name.find("layers.1.mlp") != std::string::npos || name.find("layers.3.mlp") != std::string::npos;
  });
  CHECK(checked == 8);
}

TEST_CASE("gradients of a norm after the embedding, and of the embedding, are the differences of the loss") {
  for (const bool tied : {false, true}) {
    ModelConfig config = plain_config();
    config.embedding_norm = true;
    config.tie_word_embeddings = tied;
    CHECK(check_gradients(config, [](const std::string& name) { return name.find("model.embed_") == 0; }) == 2);
  }
}

TEST_CASE("layers of two kinds may keep any of their tensors: gradients are the same bits") {
  const ModelConfig config = mixed_config();
  const Sequences sequences = batch_of(config);
  const auto comm = make_single_comm();
  SmallModel everything(config, *comm, {});
  const std::vector<float> expected = gradients_of(everything, sequences);
  const size_t tensors = kept_tensors(config).size();
  for (uint32_t subset = 0; subset < 1u << tensors; subset += 683) {  // 48 of them, each bit in both states
    KeptLayers kept;
    for (size_t i = 0; i < tensors; ++i) kept[i] = subset >> i & 1;
    SmallModel small(config, *comm, {.kept = kept});
    INFO("subset " << subset);
    CHECK(gradients_of(small, sequences) == expected);
  }
}

TEST_CASE("the text of a choice counts kept layers of those of their kind that may keep them") {
  KeptLayers kept;
  kept[0] = 2;
  CHECK(kept_text(plain_config(), kept) ==
        "qkv of 2, attention of 0, mid of 0, gate_up of 0, norm1 of 0, norm2 of 0, swiglu of 0 layers, of 3");
  ModelConfig config = mixed_config();
  config.num_hidden_layers = kLayers + 1;  // three decoders, two toys
  CHECK(
      starts_with(kept_text(config, kept),
                  "full.qkv of 2, full.attention of 0, full.mid of 0, full.gate_up of 0 layers, of 2, toy.qkv of 0, "));
}

TEST_CASE("two parts of a layer may not keep rows of one name") {
  const LayerKind twice = {"twice", [](const ModelConfig& made) {
                             std::vector<std::unique_ptr<const Part>> parts;
                             for (int i = 0; i < 2; ++i) parts.push_back(std::make_unique<ToyPart>(made));
                             return parts;
                           }};
  ModelConfig config = plain_config();
  config.pattern = {&twice};
  MemoryPlan plan;
  const LayerTable layers(config);
  CHECK_THROWS_WITH(
      ActivationPlan(layers, config.hidden_size, 100, 0, DType::kBF16, Passes::kForwardAndBackward, {}, plan),
      Catch::Contains("two parts of a layer keep rstd2"));
}

RANKS_CASE("layers of two kinds leave no gradient of each other in the padding, which the gradient norm counts") {
  ModelConfig config = mixed_config();
  config.intermediate_size = 37;                                  // units with padding, at other places in each kind
  config.pattern = {&kDecoderLayer, &kDecoderLayer, &kToyLayer};  // kinds take turns in the two gradient buffers
  const Sequences sequences = batch_of(config);
  SmallModel small(config, world.comm(), {});
  small.parameters.initialize(1, *small.stream);
  small.parameters.begin_step();
  small.zero_sums();
  small.model.forward_backward(*small.stream, sequences.batch(), small.sums);
  small.model.finish_gradients(*small.stream);
  small.stream->synchronize();
  const Tensor gradients = small.parameters.gradients();
  std::vector<float> padding(gradients.as<float>(), gradients.as<float>() + gradients.count());
  small.for_each_part(gradients, [&](const Param&, Tensor part, int64_t) {
    const int64_t first = part.as<float>() - gradients.as<float>();
    std::fill_n(padding.begin() + first, part.count(), 0.0f);
  });
  CHECK(std::all_of(padding.begin(), padding.end(), [](float value) { return value == 0; }));
}
