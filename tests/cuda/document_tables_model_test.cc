// The tables of a micro-batch's documents in a whole model on the emulator, with a fake of cuDNN's graphs. They are
// made once a micro-batch for all layers and both passes, and again by each replay of a graph.
#include <numeric>

#include "backend/support.h"
#include "comm/comm.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "model/transformer.h"
#include "tests/cuda/emulator/calls.h"
#include "tests/cuda/plain_graph.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr int64_t kTokens = 24, kLayers = 3;

// Chooses as cudnn.cc does; its plans are plain loops.
class PlainCudnn final : public CudnnAttention {
 public:
  bool supports(const Attention& args, int64_t) override { return takes(spec_of(args, false)); }
  bool supports(const AttentionBackward& args, int64_t) override { return takes(spec_of(args, true)); }
  int64_t workspace_bytes(const Workload& workload) override {
    tokens_ = workload.tokens;
    DocumentBatch most = ragged_documents(1, workload.max_length, tokens_);
    most.count = most_slots(most);
    return CallParts({most, workload.heads, true}).graph;
  }
  void run(cudaStream_t stream, const Attention& args, std::byte* workspace) override {
    call(stream, args, false, workspace);
  }
  void run(cudaStream_t stream, const AttentionBackward& args, std::byte* workspace) override {
    call(stream, args, true, workspace);
  }

 private:
  static bool takes(const AttentionGraphSpec& spec) {
    return !spec.documents.ragged() || spec.documents.count <= most_slots(spec.documents);
  }
  template <class Args>
  AttentionGraphSpec spec_of(const Args& args, bool backward) const {
    const int64_t documents = args.cu_seqlens.count() - 1;
    const auto uniform = uniform_documents(args.qkv.dim(0), documents, args.max_length);
    return {uniform ? *uniform : ragged_documents(documents, args.max_length, tokens_), args.heads, backward};
  }
  template <class Args>
  void call(cudaStream_t stream, const Args& args, bool backward, std::byte* workspace) const {
    const AttentionGraphSpec spec = spec_of(args, backward);
    PlainGraph graph(spec, stream);
    call_graph(nullptr, stream, graph, spec, args, workspace);
  }

  int64_t tokens_ = 0;
};

Backend plain_backend() {
  RuntimeOptions options;
  options.ranks_per_gpu = 64;
  auto device = std::make_unique<CudaDevice>(0);
  const int64_t memory = device->total_bytes();
  return {std::move(device), std::make_unique<CudaOps>(options, memory, std::make_unique<CudaGemm>(options),
                                                       std::make_unique<PlainCudnn>())};
}

ModelConfig grouped_config() {
  ModelConfig config;
  config.vocab_size = 32;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = kLayers;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 8;
  config.max_position_embeddings = 128;
  return config;
}

class Model {
 public:
  explicit Model(CudaGraphs graphs, const KeptLayers& kept = all_kept(kept_tensors(grouped_config())),
                 int64_t tokens = kTokens)
      : table_(make_param_table(grouped_config())),
        backend_(plain_backend()),
        parameters_(table_, *comm_, backend_, {}, plan_),
        model_(grouped_config(), parameters_,
               {.max_tokens = tokens, .max_length = tokens, .kept = kept, .graphs = graphs}, plan_),
        sums_(plan_.add("sums", DType::kF64, Shape{kStepSums})),
        stream_(backend_.device->make_stream()),
        arena_(plan_, *backend_.device) {
    parameters_.commit(arena_);
    model_.commit(arena_, *stream_);
    parameters_.initialize(1, *stream_);
    parameters_.begin_step();
  }

  // A micro-batch of documents that end at `ends`; `backward`: else it is only evaluated.
  void run(const std::vector<int32_t>& ends, bool backward = true) {
    std::vector<int32_t> cu = {0}, tokens, positions;
    cu.insert(cu.end(), ends.begin(), ends.end());
    for (size_t d = 0; d + 1 < cu.size(); ++d) {
      for (int32_t t = cu[d]; t < cu[d + 1]; ++t) {
        positions.push_back(t - cu[d]);
        tokens.push_back((7 * t + 3) % 31);
      }
    }
    const TokenBatch batch{tokens, tokens, positions, cu};
    backward ? model_.forward_backward(*stream_, batch, arena_[sums_])
             : static_cast<void>(model_.evaluate(*stream_, batch, arena_[sums_]));
    stream_->synchronize();
  }

  bool replays() const { return model_.replays(); }

  // Losses and gradients so far.
  std::string results() {
    std::string all;
    for (size_t i = 0; i < plan_.entries().size(); ++i) {
      const MemoryPlan::Entry& entry = plan_.entries()[i];
      if (entry.name != "sums" && !entry.name.starts_with("gradients/")) continue;
      std::string bytes(static_cast<size_t>(entry.bytes()), '\0');
      if (bytes.empty()) continue;
      backend_.device->copy_to_host(*stream_, arena_[MemoryPlan::Slot{static_cast<int64_t>(i)}], bytes.data());
      stream_->synchronize();
      all += bytes;
    }
    return all;
  }

 private:
  MemoryPlan plan_;
  std::unique_ptr<Comm> comm_ = make_single_comm();
  ParamTable table_;
  Backend backend_;
  ShardedParameters parameters_;
  Transformer model_;
  MemoryPlan::Slot sums_;
  std::unique_ptr<Stream> stream_;
  Arena arena_;
};

struct Launches {
  int64_t tables = 0, key_copies = 0;
};
template <class Work>
Launches launches_of(const Work& work) {
  const Launches before{emulator::kernels_run("ragged_tables"), emulator::kernels_run("own_keys")};
  work();
  return {emulator::kernels_run("ragged_tables") - before.tables,
          emulator::kernels_run("own_keys") - before.key_copies};
}

// All have the same tokens, so another cut alone gives other results.
const std::vector<std::vector<int32_t>> kMicroBatches = {{3, 9, 24},       {11, 12, 13, 24}, {1, 2, 24},
                                                         {20, 21, 23, 24}, {5, 6, 24},       {9, 10, 15, 24},
                                                         {2, 4, 6, 24},    {8, 17, 24},      {4, 14, 22, 24}};

}  // namespace

TEST_CASE("a model makes the tables of documents once a micro-batch, with and without recomputation") {
  for (const KeptLayers& kept : {all_kept(kept_tensors(grouped_config())), KeptLayers()}) {
    Model model(CudaGraphs::kOff, kept);
    const Launches training = launches_of([&] { model.run({3, 9, 24}); });
    CHECK(training.tables == 1);
    CHECK(training.key_copies == 2 * kLayers);  // ragged gradients of grouped heads: gathered and scattered
    CHECK(launches_of([&] { model.run({5, 5, 24}, false); }).tables == 1);
    CHECK(launches_of([&] { model.run({24}); }).tables == 0);  // documents of the maximum length
    CHECK(launches_of([&] { model.run({7}); }).tables == 1);
  }
}

TEST_CASE("a model makes no tables of more documents than cuDNN takes: our own kernels need none") {
  Model model(CudaGraphs::kOff, {}, 70);
  std::vector<int32_t> ends(64);
  std::iota(ends.begin(), ends.end(), 1);
  ends.back() = 70;
  const Launches most = launches_of([&] { model.run(ends, false); });
  CHECK(most.tables == 1);
  ends.resize(70);
  std::iota(ends.begin(), ends.end(), 1);
  ends.pop_back();
  ends.back() = 70;
  CHECK(launches_of([&] { model.run(ends, false); }).tables == 0);
}

TEST_CASE("a replayed micro-batch has the tables of its own documents") {
  Model eager(CudaGraphs::kOff), graphs(CudaGraphs::kOn);
  for (const std::vector<int32_t>& ends : kMicroBatches) {
    INFO("documents up to " << ends.front());
    eager.run(ends);
    const Launches replayed = launches_of([&] { graphs.run(ends); });
    CHECK(replayed.tables == 1);
    CHECK(replayed.key_copies == 2 * kLayers);
    REQUIRE((graphs.results() == eager.results()));
  }
  CHECK(graphs.replays());
}
