// The rows that attention may read behind its tokens: planned on a GPU, zero from the start, and written by no
// operation of a training step. On the emulator, through the whole model.
#include "backend/support.h"
#include "comm/comm.h"
#include "model/transformer.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr int64_t kTokens = 70;

ModelConfig small_config(bool qk_norm) {
  ModelConfig config;
  config.vocab_size = 64;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 64;
  config.max_position_embeddings = kTokens;
  if (qk_norm) config.qk_norm = QkNormKind::kHead;
  return config;
}

Backend backend_by(AttentionKind attention) {
  RuntimeOptions options;
  options.attention = attention;
  options.ranks_per_gpu = 64;
  return make_cuda_backend(options, 0);
}

struct Model {
  Model(const ModelConfig& config, AttentionKind attention, Passes passes, const KeptLayers& kept)
      : table(make_param_table(config)),
        backend(backend_by(attention)),
        parameters(table, *comm, backend, {}, plan),
        model(config, parameters, {.max_tokens = kTokens, .max_length = kTokens, .passes = passes, .kept = kept}, plan),
        sums_slot(plan.add("sums", DType::kF64, Shape{kStepSums})) {}

  MemoryPlan plan;
  std::unique_ptr<Comm> comm = make_single_comm();
  ParamTable table;
  Backend backend;
  ShardedParameters parameters;
  Transformer model;
  MemoryPlan::Slot sums_slot;
};

bool read_by_attention(const std::string& name) {
  for (const char* end : {" qkv", " lse", "/d attention", " attention"}) {
    if (name.starts_with("activations/") && name.ends_with(end)) return !name.ends_with("/d qkv");
  }
  return false;
}

}  // namespace

TEST_CASE(
    "128 rows behind all that attention reads are planned where cuDNN may be used, and nothing else grows but tables") {
  const ModelConfig config = small_config(true);
  const KeptLayers all = all_kept(kept_tensors(config));
  using enum Passes;
  for (const auto& [passes, kept, expected] :
       {std::tuple(kForwardAndBackward, all, 8), std::tuple(kForwardAndBackward, KeptLayers(), 5),
        std::tuple(kForward, KeptLayers(), 3)}) {
    const Model with(config, AttentionKind::kAuto, passes, kept), without(config, AttentionKind::kNative, passes, kept);
    CHECK(with.backend.ops->rows_behind_attention() == 128);
    CHECK(without.backend.ops->rows_behind_attention() == 0);
    std::vector<MemoryPlan::Entry> entries = with.plan.entries();
    std::erase_if(entries, [](const MemoryPlan::Entry& entry) { return entry.name == "batch/document tables"; });
    CHECK(entries.size() + 1 == with.plan.entries().size());
    REQUIRE(entries.size() == without.plan.entries().size());
    int64_t found = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      const MemoryPlan::Entry &a = entries[i], &b = without.plan.entries()[i];
      if (a.name == "workspace") continue;  // cuDNN's part has rows of its own behind
      INFO(a.name << " " << a.shape.text());
      CHECK(a.name == b.name);
      CHECK(a.bytes() * kTokens == b.bytes() * (read_by_attention(a.name) ? kTokens + 128 : kTokens));
      found += read_by_attention(a.name) ? 1 : 0;
    }
    // qkv, lse and attention of a layer; in training rotated qkv and d attention too.
    CHECK(found == expected);
  }
}

TEST_CASE("rows behind what attention reads stay zero over micro-batches, with documents and recomputation") {
  for (const bool qk_norm : {false, true}) {
    const ModelConfig config = small_config(qk_norm);
    for (const KeptLayers& kept : {all_kept(kept_tensors(config)), KeptLayers()}) {
      Model m(config, AttentionKind::kAuto, Passes::kForwardAndBackward, kept);
      const std::unique_ptr<Stream> stream = m.backend.device->make_stream();
      const Arena arena(m.plan, *m.backend.device);
      m.parameters.commit(arena);
      m.model.commit(arena, *stream);
      m.parameters.initialize(1, *stream);
      m.parameters.begin_step();
      const Tensor sums = arena[m.sums_slot];
      std::vector<int32_t> tokens, positions;
      for (int32_t t = 0; t < kTokens; ++t) {
        tokens.push_back(t % 61);
        positions.push_back(t < 3 ? t : t - 3);
      }
      const std::vector<int32_t> all = {0, 3, kTokens}, fewer = {0, 3, 33};
      m.model.forward_backward(*stream, {tokens, tokens, positions, all}, sums);
      const std::span<const int32_t> some = std::span(tokens).first(33);
      m.model.forward_backward(*stream, {some, some, std::span(positions).first(33), fewer}, sums);
      m.model.finish_gradients(*stream);
      m.model.evaluate(*stream, {tokens, tokens, positions, all}, sums);
      stream->synchronize();
      int64_t found = 0;
      for (size_t i = 0; i < m.plan.entries().size(); ++i) {
        const MemoryPlan::Entry& entry = m.plan.entries()[i];
        if (!read_by_attention(entry.name)) continue;
        INFO(entry.name);
        std::string bytes(static_cast<size_t>(entry.bytes()), '\1');
        m.backend.device->copy_to_host(*stream, arena[MemoryPlan::Slot{static_cast<int64_t>(i)}], bytes.data());
        stream->synchronize();
        const size_t behind = bytes.size() / (kTokens + 128) * kTokens;
        CHECK(bytes.find_first_not_of('\0', behind) == std::string::npos);
        CHECK(bytes.find_first_not_of('\0', behind - 8) != std::string::npos);  // the last token's row is there
        ++found;
      }
      CHECK(found == (kept == KeptLayers() ? 4 : 7) + (qk_norm ? 1 : 0));
    }
  }
}
