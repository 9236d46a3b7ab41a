// Compares our decoder with that of Hugging Face transformers. tests/golden/README.md says how the numbers were made.
#include "model/golden.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "optim/grad_norm.h"

using namespace tokamak;

namespace {

const std::vector<std::string> kCases = {
    "llama_mha_untied", "llama_mha_tied", "llama_gqa_untied", "llama_gqa_tied", "qwen2_gqa_tied", "qwen3_gqa_untied",
    "mistral_window",   "qwen3_window",   "smollm3",          "olmo2",          "olmo3",          "gemma3",
    "gemma2",           "llama_biases"};
const std::vector<std::string> kAngles = {"llama_rope_linear", "llama_rope_dynamic", "llama_rope_yarn",
                                          "llama_rope_llama3"};  // for f32 only, without AdamW

std::vector<std::string> all_cases() {
  std::vector<std::string> all = kCases;
  all.insert(all.end(), kAngles.begin(), kAngles.end());
  return all;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

// ||a - b|| / ||b||
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

Sequences sequences_of(const Golden& golden, int64_t length) {
  const std::string t = str("t", length, "/");
  return {golden.file.values<int32_t>(t + "input_ids"), golden.file.values<int32_t>(t + "targets"), length};
}

std::vector<float> logits_of(SmallModel& small, const Sequences& sequences) {
  const auto rows = static_cast<int64_t>(sequences.tokens.size());
  const int64_t vocab = small.model.config().vocab_size;
  std::vector<float> logits(static_cast<size_t>(rows * vocab));
  small.model.logits(*small.stream, sequences.batch(), 0, {logits.data(), DType::kF32, Shape{rows, vocab}});
  return logits;
}

std::vector<float> floats(const std::vector<bf16>& values) {
  std::vector<float> out;
  for (const bf16 v : values) out.push_back(to_float(v));
  return out;
}

}  // namespace

TEST_CASE("in f32, logits and loss are those of transformers") {
  for (const std::string& name : all_cases()) {
    const Golden golden(name);
    for (const int64_t length : {16, 37}) {
      const auto comm = make_single_comm();
      SmallModel small(golden.config, *comm, {.max_length = length});
      small.load(golden.file);
      INFO(name << ", T " << length);
      const Sequences sequences = sequences_of(golden, length);
      CHECK(largest_difference(logits_of(small, sequences), golden.file.values<float>(str("t", length, "/logits"))) <
            5e-5);
      small.zero_sums();
      small.model.evaluate(*small.stream, sequences.batch(), small.sums);
      const double loss = small.sum(kSumLoss) / small.sum(kSumTargets);
      CHECK(std::abs(loss - golden.file.values<float>(str("t", length, "/loss"))[0]) < 2e-6);
    }
  }
}

TEST_CASE(
    "in f32, documents of a batch have transformers' logits: beginnings of one sequence, around the window's length") {
  for (const std::string& name : all_cases()) {
    if (name == "llama_rope_dynamic") continue;  // its angles depend on the length
    const Golden golden(name);
    const int64_t window = golden.config.sliding_window > 0 ? golden.config.sliding_window : 7;
    const auto ids = golden.file.values<int32_t>("t37/input_ids");
    const auto expected = golden.file.values<float>("t37/logits");  // of each beginning, as no token sees later ones
    std::vector<int32_t> tokens, positions, cu_seqlens = {0};
    std::vector<float> wanted;
    for (const int64_t length : {window - 1, window, window + 1, int64_t{37}, int64_t{1}, 2 * window}) {
      tokens.insert(tokens.end(), ids.begin(), ids.begin() + length);
      wanted.insert(wanted.end(), expected.begin(), expected.begin() + length * golden.config.vocab_size);
      for (int32_t position = 0; position < length; ++position) positions.push_back(position);
      cu_seqlens.push_back(static_cast<int32_t>(tokens.size()));
    }
    const auto comm = make_single_comm();
    SmallModel small(golden.config, *comm, {});
    small.load(golden.file);
    std::vector<float> logits(wanted.size());
    const auto rows = static_cast<int64_t>(tokens.size());
    small.model.logits(*small.stream, {tokens, tokens, positions, cu_seqlens}, 0,
                       {logits.data(), DType::kF32, Shape{rows, golden.config.vocab_size}});
    INFO(name);
    CHECK(largest_difference(logits, wanted) < 5e-5);
  }
}

TEST_CASE("in f32, every gradient is that of transformers, with everything kept or recomputed") {
  for (const std::string& name : all_cases()) {
    const Golden golden(name);
    for (const KeptLayers& kept : {all_kept(kept_tensors(golden.config)), KeptLayers()}) {
      for (const int64_t length : {16, 37}) {
        const auto comm = make_single_comm();
        SmallModel small(golden.config, *comm, {.kept = kept, .max_length = length});
        small.load(golden.file);
        const Sequences sequences = sequences_of(golden, length);
        small.zero_sums();
        small.parameters.begin_step();
        small.model.forward_backward(*small.stream, sequences.batch(), small.sums);
        const double targets = small.sum(kSumTargets);
        small.for_each_part(small.parameters.gradients(), [&](const Param& param, Tensor part, int64_t) {
          INFO(name << ", T " << length << ", " << param.name);
          std::vector<float> mean(part.as<float>(), part.as<float>() + part.count());
          for (float& g : mean) g = static_cast<float>(g / targets);
          CHECK(relative_error(mean, golden.file.values<float>(str("t", length, "/grad/", param.name))) < 1e-5);
        });
      }
    }
  }
}

TEST_CASE("a model that keeps nothing for backward gives the same bits") {
  for (const std::string& name : all_cases()) {
    const Golden golden(name);
    const Sequences sequences = sequences_of(golden, 37);
    const auto comm = make_single_comm();
    SmallModel kept(golden.config, *comm, {}), small(golden.config, *comm, {.passes = Passes::kForward});
    kept.load(golden.file);
    small.load(golden.file);
    INFO(name);
    CHECK((logits_of(small, sequences) == logits_of(kept, sequences)));
  }
}

TEST_CASE("twenty steps of AdamW with clipping follow torch's losses and gradient norms") {
  for (const std::string& name : kCases) {
    const Golden golden(name);
    const auto recipe = nlohmann::json::parse(golden.file.metadata().at("adamw"));
    SmallModelOptions options;
    options.optimizer.betas = {recipe.at("betas")[0], recipe.at("betas")[1]};
    options.optimizer.eps = recipe.at("eps");
    options.optimizer.weight_decay = recipe.at("weight_decay");
    const auto comm = make_single_comm();
    SmallModel small(golden.config, *comm, options);
    small.load(golden.file);
    const int64_t length = recipe.at("sequence_length");
    const Sequences all(golden.file.values<int32_t>("adamw/input_ids"), golden.file.values<int32_t>("adamw/targets"),
                        length);
    const auto losses = golden.file.values<float>("adamw/losses");
    const auto norms = golden.file.values<float>("adamw/grad_norms");
    REQUIRE(losses.size() == 20);
    for (int64_t step = 1; step <= 20; ++step) {
      INFO(name << ", step " << step);
      const Sequences batch = all.part(2 * (step - 1), 2, length);
      small.zero_sums();
      small.parameters.begin_step();
      small.model.forward_backward(*small.stream, batch.batch(), small.sums);
      small.model.finish_gradients(*small.stream);
      reduce_and_clip(small.parameters, *small.stream, small.sums, small.control,
                      {.max_norm = recipe.at("max_grad_norm")});
      small.optimizer->step(*small.stream, {.t = step, .lr = recipe.at("lr"), .control = small.control});
      const auto i = static_cast<size_t>(step - 1);
      CHECK(small.decided(kMeanLoss) == Approx(losses[i]).epsilon(1e-5));
      CHECK(small.decided(kGradNorm) == Approx(norms[i]).epsilon(1e-4));
    }
    const auto final_norms = golden.file.values<float>("adamw/final_norms");
    const auto order = nlohmann::json::parse(golden.file.metadata().at("adamw_final_norms_order"));
    small.for_each_part(small.parameters.master(), [&](const Param& param, Tensor part, int64_t) {
      double square = 0;
      for (int64_t i = 0; i < part.count(); ++i) square += std::pow(static_cast<double>(part.as<float>()[i]), 2);
      const auto found = std::find(order.begin(), order.end(), param.name);
      REQUIRE(found != order.end());
      INFO(name << ", " << param.name);
      // The gradients of keys' biases nearly cancel, so AdamW moves them by rounding too: with AVX2 alone, and hardly
      // optimised, by 5.7e-6.
      const double bound = param.name.find("k_proj.bias") != std::string::npos ? 2e-5 : 5e-6;
      CHECK(std::sqrt(square) == Approx(final_norms[static_cast<size_t>(found - order.begin())]).epsilon(bound));
    });
  }
}

// transformers rounds to bf16 after every operation, we keep statistics, RoPE and the residual sum in f32 and round
// once: the two differ by their roundings. Two such runs may differ by 3e-2 of the norm. Biases of keys and norms of
// heads may differ by 4e-2, because their gradients nearly cancel. So may gradients of more than two layers: a SmolLM3
// of four differs by 3.3e-2 with AVX-512. A wrong formula differs far more.
TEST_CASE("in bf16, logits, loss and gradients are near transformers' own bf16 run") {
  for (const std::string& name : kCases) {
    const Golden golden(name);
    const ModelConfig& config = golden.config;
    const double bound = config.qkv_bias || config.has_qk_norm() || config.num_hidden_layers > 2 ? 4e-2 : 3e-2;
    const auto comm = make_single_comm();
    SmallModel small(golden.config, *comm, {.compute = DType::kBF16});
    small.load(golden.file);
    for (const int64_t length : {16, 37}) {
      const std::string t = str("bf16/t", length, "/");
      const Sequences sequences = sequences_of(golden, length);
      INFO(name << ", T " << length);
      CHECK(relative_error(logits_of(small, sequences), golden.file.values<float>(t + "logits")) < 3e-2);
      small.zero_sums();
      small.parameters.begin_step();
      small.model.forward_backward(*small.stream, sequences.batch(), small.sums);
      const double targets = small.sum(kSumTargets);
      CHECK(std::abs(small.sum(kSumLoss) / targets - golden.file.values<float>(t + "loss")[0]) < 1e-2);
      small.for_each_part(small.parameters.gradients(), [&](const Param& param, Tensor part, int64_t) {
        INFO(param.name);
        std::vector<float> mean(part.as<float>(), part.as<float>() + part.count());
        for (float& g : mean) g = static_cast<float>(g / targets);
        CHECK(relative_error(mean, floats(golden.file.values<bf16>(t + "grad/" + param.name))) < bound);
      });
    }
  }
}
