// The tensors that a layer keeps for backward change memory and work, but no bit of a result.
#include "model/recompute.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/golden.h"
#include "support/kept.h"

using namespace tokamak;

namespace {

constexpr int64_t kLayers = 4;

// The bits of the gradients, then of the losses, after two micro-batches.
std::vector<char> bits_of(SmallModel& small) {
  small.parameters.initialize(1, *small.stream);
  small.for_each_part(small.parameters.master(), [](const Param& param, Tensor part, int64_t) {
    if (!param.name.ends_with(".bias")) return;  // it begins at 0, which would hide that one is missing
    for (int64_t i = 0; i < part.count(); ++i) part.as<float>()[i] = 0.1f * static_cast<float>(i % 7 - 3);
  });
  small.parameters.masters_changed(*small.stream);
  small.parameters.begin_step();
  small.zero_sums();
  std::mt19937 random(3);
  for (const int64_t length : {16, 11}) {
    std::vector<int32_t> ids(static_cast<size_t>(3 * length + 1));
    for (int32_t& id : ids)
      id = static_cast<int32_t>(random() % static_cast<uint32_t>(small.model.config().vocab_size));
    const Sequences sequences({ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}, length);
    small.model.forward_backward(*small.stream, sequences.batch(), small.sums);
  }
  std::vector<char> bits;
  for (const Tensor& tensor : {small.parameters.gradients(), small.sums}) {
    const auto* data = static_cast<const char*>(tensor.data());
    bits.insert(bits.end(), data, data + tensor.count() * size_of(tensor.dtype()));
  }
  return bits;
}

// All counts from 0 to `most` of the tensors from `first` on, by brute force; the same preference as choose_kept's.
void try_all(const PerKeptTensor<KeepCost>& costs, int64_t bytes, size_t first, KeptLayers& now, KeptLayers& best) {
  if (kept_bytes(costs, now) > bytes) return;
  if (first == kDecoderKept) {
    const double flops = recomputed_flops(costs, now), least = recomputed_flops(costs, best);
    if (flops < least || (flops == least && kept_bytes(costs, now) < kept_bytes(costs, best))) best = now;
    return;
  }
  for (int64_t count = 0; count <= costs[first].most; ++count) {
    now.values[first] = count;
    try_all(costs, bytes, first + 1, now, best);
  }
  now.values[first] = 0;
}

KeptLayers best_by_trying(const PerKeptTensor<KeepCost>& costs, int64_t bytes) {
  KeptLayers best, now;
  try_all(costs, bytes, 0, now, best);
  return best;
}

}  // namespace

TEST_CASE("any number of layers may keep any tensor: gradients and losses are the same bits") {
  for (const std::string name : {"llama_gqa_untied", "qwen2_gqa_tied", "qwen3_gqa_untied"}) {
    ModelConfig config = Golden(name).config;
    config.num_hidden_layers = kLayers;
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      const auto comm = make_single_comm();
      SmallModel everything(config, *comm, {.compute = compute});
      const std::vector<char> expected = bits_of(everything);
      CHECK(std::count(expected.begin(), expected.end(), 0) < static_cast<int64_t>(expected.size()) / 2);
      const int64_t choices[] = {0, 1, kLayers - 1};
      // Every combination of the first four counts, and of the counts of any two tensors. For this the last three are
      // sums of digits modulo 3.
      for (int64_t code = 0; code < 3 * 3 * 3 * 3; ++code) {
        const int64_t a = code % 3, b = code / 3 % 3, c = code / 9 % 3, d = code / 27;
        const int64_t digits[] = {a, b, c, d, (a + b + c) % 3, (a + 2 * b + d) % 3, (b + c + d) % 3};
        KeptLayers kept;
        std::string counts;
        for (size_t i = 0; i < kDecoderKept; ++i) {
          kept.values[i] = choices[digits[i]];
          counts += " " + std::to_string(kept.values[i]);
        }
        SmallModel small(config, *comm, {.compute = compute, .kept = kept});
        INFO(name << " " << name_of(compute) << ", kept in layers:" << counts);
        CHECK((bits_of(small) == expected));
      }
    }
  }
}

TEST_CASE("with the switches of each family, too, any number of layers may keep any tensor", "[large]") {
  ModelConfig embedding_norm = Golden("llama_biases").config, both = Golden("olmo2").config;
  embedding_norm.embedding_norm = true;
  both.norm_placement = NormPlacement::kBoth;
  const std::map<std::string, ModelConfig> models = {{"OLMo 2", Golden("olmo2").config},
                                                     {"OLMo 2 with both norms", both},
                                                     {"OLMo 3", Golden("olmo3").config},
                                                     {"SmolLM3", Golden("smollm3").config},
                                                     {"Gemma 2", Golden("gemma2").config},
                                                     {"Gemma 3", Golden("gemma3").config},
                                                     {"biases and a norm after the embedding", embedding_norm}};
  for (const auto& [name, model] : models) {
    ModelConfig config = model;
    config.num_hidden_layers = kLayers;
    const std::vector<KeptTensor> tensors = kept_tensors(config);
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      const auto comm = make_single_comm();
      SmallModel everything(config, *comm, {.compute = compute});
      const std::vector<char> expected = bits_of(everything);
      std::mt19937 random(7);
      for (int choice = 0; choice < 20; ++choice) {
        KeptLayers kept;
        for (size_t i = 0; i < tensors.size(); ++i) {
          kept[i] = static_cast<int64_t>(random() % static_cast<uint64_t>(tensors[i].most + 1));
        }
        SmallModel small(config, *comm, {.compute = compute, .kept = kept});
        INFO(name << ", " << name_of(compute) << ", kept: " << kept_text(config, kept));
        CHECK((bits_of(small) == expected));
      }
    }
  }
}

TEST_CASE("the plan has a buffer by name for each layer that keeps a tensor, and one that the others share") {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = kLayers;
  const int64_t rows_behind = GENERATE(0, 128);
  const auto plan_of = [&](const KeptLayers& kept) {
    MemoryPlan plan;
    const ActivationPlan activations(LayerTable(config), config.hidden_size, 100, rows_behind, DType::kBF16,
                                     Passes::kForwardAndBackward, kept, plan);
    return plan;
  };
  KeptLayers kept;
  kept[kQkv] = 1;
  kept[kGateUp] = 3;
  kept[kNorm2] = 2;
  std::map<std::string, int64_t> buffers;
  const MemoryPlan plan = plan_of(kept);
  const MemoryPlan::Group group = plan.groups().at(0);
  for (const auto& member : group.members) buffers[member.name] = member.buffers;
  CHECK(buffers.at("layer.* input") == 4);
  CHECK(buffers.at("layer.* qkv") == 2);
  CHECK(buffers.at("layer.* rstd1") == 2);
  CHECK(buffers.at("layer.* attention") == 1);
  CHECK(buffers.at("layer.* lse") == 1);
  CHECK(buffers.at("layer.* mid") == 1);
  CHECK(buffers.at("layer.* gate_up") == 4);
  CHECK(buffers.at("layer.* rstd2") == 4);
  CHECK(buffers.at("layer.* swiglu") == 1);
  CHECK(buffers.at("layer.* norm2") == 2);  // the others are in "norm", with all of norm1
  CHECK(buffers.count("layer.* norm1") == 0);
  CHECK(buffers.at("norm") == 1);

  const auto costs = keep_costs(config, 100, 50, DType::kBF16, rows_behind);
  const int64_t full = plan_of({}).total_bytes();
  CHECK(plan.total_bytes() - full == kept_bytes(costs, kept));
  const KeptLayers all = kept_in(kLayers - 1);
  CHECK(plan_of(all).total_bytes() - full == kept_bytes(costs, all));
}

TEST_CASE("the choice spares as many FLOPs as the best of all choices, in as few bytes", "[one-thread]") {
  std::mt19937 random(16);
  for (int problem = 0; problem < 500; ++problem) {
    const auto most = static_cast<int64_t>(random() % 4);
    const bool alike = problem % 3 == 0;  // FLOPs in proportion to bytes: many ties
    PerKeptTensor<KeepCost> costs;
    for (size_t tensor = 0; tensor < kDecoderKept; ++tensor) {
      KeepCost& cost = costs[tensor];
      cost.most = most;
      cost.bytes = 1 + static_cast<int64_t>(random() % 20);
      cost.spared = alike ? 2 * static_cast<double>(cost.bytes) : static_cast<double>(random() % 20);
    }
    KeptLayers worthy;
    for (size_t tensor = 0; tensor < kDecoderKept; ++tensor) worthy[tensor] = costs[tensor].spared > 0 ? most : 0;
    const KeptLayers all = kept_in(most);
    const int64_t bytes = static_cast<int64_t>(random()) % (kept_bytes(costs, all) + 3);
    const KeptLayers chosen = choose_kept(costs, bytes), best = best_by_trying(costs, bytes);
    INFO("problem " << problem << ", " << bytes << " bytes, up to " << most << " layers");
    CHECK(recomputed_flops(costs, chosen) == recomputed_flops(costs, best));
    CHECK(kept_bytes(costs, chosen) == kept_bytes(costs, best));
    CHECK(kept_bytes(costs, chosen) <= bytes);
    CHECK((choose_kept(costs, INT64_MAX) == worthy));
    CHECK((choose_kept_by_flops(costs, INT64_MAX) == all));
    CHECK((choose_kept(costs, -1) == KeptLayers{}));
  }
}

TEST_CASE("what FLOPs leave free goes to tensors that spare none, as many bytes of them as fit") {
  std::mt19937 random(17);
  for (int problem = 0; problem < 300; ++problem) {
    const auto most = static_cast<int64_t>(1 + random() % 3);
    PerKeptTensor<KeepCost> costs, others;
    for (size_t tensor = 0; tensor < kDecoderKept; ++tensor) {
      const bool gemm = tensor <= kGateUp;
      costs[tensor].most = most;
      costs[tensor].bytes = 1 + static_cast<int64_t>(random() % 20);
      costs[tensor].spared = gemm ? 1 + static_cast<double>(random() % 20) : 0;
      if (!gemm) others[tensor] = {costs[tensor].bytes, static_cast<double>(costs[tensor].bytes), most};
    }
    const KeptLayers all = kept_in(most);
    const int64_t bytes = static_cast<int64_t>(random()) % (kept_bytes(costs, all) + 3);
    const KeptLayers by_flops = choose_kept(costs, bytes);
    KeptLayers best = best_by_trying(others, bytes - kept_bytes(costs, by_flops));
    const int64_t filled = kept_bytes(costs, by_flops) + kept_bytes(others, best);
    const KeptLayers chosen = choose_kept_by_flops(costs, bytes);
    INFO("problem " << problem << ", " << bytes << " bytes, up to " << most << " layers");
    CHECK(recomputed_flops(costs, chosen) == recomputed_flops(costs, by_flops));
    CHECK(kept_bytes(costs, chosen) == filled);
  }
}

TEST_CASE("of tensors that are worth the same in many layers a choice spares no less than the greedy one") {
  std::mt19937 random(18);
  for (int problem = 0; problem < 20; ++problem) {
    const int64_t most = 79;
    PerKeptTensor<KeepCost> costs;
    double total = 0;
    for (size_t tensor = 0; tensor < kDecoderKept; ++tensor) {
      KeepCost& cost = costs[tensor];
      cost.most = most;
      cost.bytes = 1'000'000 + static_cast<int64_t>(random() % 100'000'000);
      cost.spared = static_cast<double>(cost.bytes) * (1 + 1e-6 * static_cast<double>(random() % 1000));
      total += static_cast<double>(most * cost.bytes);
    }
    std::vector<KeepCost> ordered(costs.values.begin(), costs.values.begin() + kDecoderKept);
    const auto worth = [](const KeepCost& cost) { return cost.spared / static_cast<double>(cost.bytes); };
    std::sort(ordered.begin(), ordered.end(),
              [&](const KeepCost& a, const KeepCost& b) { return worth(a) > worth(b); });
    const auto bytes = static_cast<int64_t>(total * static_cast<double>(1 + random() % 99) / 100);
    int64_t left = bytes;
    double greedy = 0, relaxed = -1;
    for (const KeepCost& cost : ordered) {
      const int64_t count = std::min(most, left / cost.bytes);
      if (relaxed < 0 && count < most) relaxed = greedy + static_cast<double>(left) * worth(cost);
      greedy += static_cast<double>(count) * cost.spared;
      left -= count * cost.bytes;
    }
    const KeptLayers kept = choose_kept(costs, bytes);
    const double spared = recomputed_flops(costs, {}) - recomputed_flops(costs, kept);
    INFO("problem " << problem);
    CHECK(kept_bytes(costs, kept) <= bytes);
    CHECK(spared >= greedy * (1 - 1e-12));
    CHECK(spared <= relaxed * (1 + 1e-12));
  }
}

TEST_CASE("more bytes never spare less, and the bytes of everything keep everything") {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = 33;
  const auto costs = keep_costs(config, 512, 256, DType::kBF16);
  const int64_t most = config.num_hidden_layers - 1;
  const KeptLayers all = kept_in(most);
  const int64_t total = kept_bytes(costs, all);
  double before = recomputed_flops(costs, {});
  for (int64_t percent = 0; percent <= 100; ++percent) {
    const int64_t bytes = total / 100 * percent;
    const KeptLayers kept = choose_kept_by_flops(costs, bytes);
    CHECK(kept_bytes(costs, kept) <= bytes);
    CHECK(recomputed_flops(costs, kept) <= before);
    before = recomputed_flops(costs, kept);
  }
  CHECK((choose_kept_by_flops(costs, total) == all));
  CHECK_FALSE((choose_kept_by_flops(costs, total - 1) == all));
  CHECK(recomputed_flops(costs, all) == 0);
}

TEST_CASE("the modes keep what they are called: everything, within a limit, or layer inputs alone") {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = kLayers;
  const auto kept = [&](RecomputeMode mode, AutoLimit bytes) {
    return kept_layers({mode, bytes}, config, 64, 32, DType::kF32);
  };
  const KeptLayers all = kept_in(kLayers - 1);
  const auto costs = keep_costs(config, 64, 32, DType::kF32);
  CHECK((kept(RecomputeMode::kNone, {}) == all));
  CHECK((kept(RecomputeMode::kFull, {}) == KeptLayers{}));
  CHECK((kept(RecomputeMode::kSelective, {}) == all));  // without a limit
  CHECK((kept(RecomputeMode::kSelective, AutoLimit::none()) == KeptLayers{}));
  const int64_t half = kept_bytes(costs, all) / 2;
  CHECK((kept(RecomputeMode::kSelective, {half}) == choose_kept_by_flops(costs, half)));
  ActivationCheckpointOptions four{.mode = RecomputeMode::kSelective, .kept_bytes = {}, .kept_layers = {3, 2, 1, 0}};
  CHECK(
      (counts_of(config, kept_layers(four, config, 64, 32, DType::kF32)) == std::vector<int64_t>{3, 2, 1, 0, 0, 0, 0}));
}
