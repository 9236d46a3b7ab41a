// Weight gradients on a second stream: which operation waits for which GEMM, that nothing is overwritten while a GEMM may
// read it, and that no bit changes. Races are found by events alone (support/stream_races.h). So the
// CPU, whose streams run one operation at a time, serves as well as a GPU.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/golden.h"
#include "model/recording_comm.h"
#include "support/stream_races.h"

using namespace tokamak;

namespace {

constexpr int64_t kLayers = 3;

Sequences short_sequences(const ModelConfig& config, int seed) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 33; ++i) ids.push_back((i * i + 7 * seed) % static_cast<int32_t>(config.vocab_size));
  return {{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}, 16};
}

// Two micro-batches: the first overwrites gradients, the second adds to them.
void run_two(SmallModel& small) {
  for (const int seed : {1, 2}) {
    small.parameters.begin_microbatch(seed == 2);
    small.model.forward_backward(*small.stream, short_sequences(small.model.config(), seed).batch(), small.sums);
  }
  small.model.finish_gradients(*small.stream);
}

// The pass begins with the same weights; then the gradients are read as the optimizer does.
std::vector<char> bits_of(SmallModel& small) {
  small.parameters.initialize(1, *small.stream);
  small.parameters.begin_step();
  small.zero_sums();
  run_two(small);
  const Tensor gradients = small.parameters.gradients();
  small.backend.ops->cast(*small.stream, {.src = gradients, .dst = small.optimizer.exp_avg()});
  const auto* data = static_cast<const char*>(gradients.data());
  return {data, data + gradients.bytes()};
}

ModelConfig config_of(const std::string& name) {
  ModelConfig config = Golden(name).config;
  config.num_hidden_layers = kLayers;
  return config;
}

// The kept tensors whose bit is set.
KeptLayers kept_of(size_t subset, int64_t layers) {
  KeptLayers kept;
  for (size_t i = 0; i < kKeptTensors.size(); ++i) kept.values[i] = (subset >> i & 1) != 0 ? layers : 0;
  return kept;
}

// The order in which the host enqueues, with what each stream waits for on the way.
class Order final : public Observer {
 public:
  explicit Order(const Stream& compute) : compute_(compute) {}
  void begin(Stream& stream, const Call& call) override {
    last_[&stream] = call.title();
    if (&stream == &compute_) {
      entries.push_back(call.title());
    } else if (call.kind == CallKind::kOperation) {
      entries.push_back("                        " + call.title() + " behind " + behind_);
    }
  }
  void end(Stream&, const Call&) override {}
  void recorded(Stream& stream, const Event& event) override { reached_[&event] = last_[&stream]; }
  void waited(Stream& stream, const Event& event) override {
    if (&stream == &compute_) {
      entries.push_back("wait for " + reached_[&event]);
    } else {
      behind_ = reached_[&event];
    }
  }
  std::vector<std::string> entries;

 private:
  const Stream& compute_;
  std::map<const Stream*, std::string> last_;
  std::map<const Event*, std::string> reached_;
  std::string behind_;
};

// The backward pass of the second of four layers.
std::vector<std::string> order_of(SmallModelOptions options) {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = 4;
  const auto comm = make_single_comm();
  options.weight_gradients = WeightGradients::kConcurrent;
  SmallModel small(config, *comm, options);
  Order order(*small.stream);
  const Observation seen(*small.backend.device, order);
  small.model.forward_backward(*small.stream, short_sequences(config, 1).batch(), small.sums);
  std::vector<size_t> ends;  // of layers
  for (size_t i = 0; i < order.entries.size(); ++i) {
    if (order.entries[i] == "rmsnorm_backward") ends.push_back(i);  // the final norm's, then two of each layer
  }
  REQUIRE(ends.size() == 1 + 2 * 4);
  const auto at = [&](size_t i) { return order.entries.begin() + static_cast<std::ptrdiff_t>(i); };
  return {at(ends[4] + 1), at(ends[6] + 1)};
}

}  // namespace

TEST_CASE("a weight's gradient starts when its operands are there, and compute waits for it before it overwrites one") {
  CHECK(order_of({.keep = Keep::kBackward}) ==
        std::vector<std::string>{"                        gemm down dw behind rmsnorm_backward",    //
                                 "gemm down dx",                                                    //
                                 "swiglu_backward",                                                 //
                                 "                        gemm gate_up dw behind swiglu_backward",  //
                                 "gemm gate_up dx",                                                 //
                                 "wait for gemm o dw",                                         // of the layer above
                                 "rmsnorm_backward",                                           //
                                 "                        gemm o dw behind rmsnorm_backward",  //
                                 "gemm o dx",                                                  //
                                 "wait for gemm qkv dw",                                       // of the layer above
                                 "attention_backward",                                         //
                                 "rope",                                                       //
                                 "                        gemm qkv dw behind rope",            //
                                 "gemm qkv dx",                                                //
                                 "wait for gemm down dw",                                      //
                                 "rmsnorm_backward"});
  // The GEMMs of the forward pass are kept, the norms are not: their one buffer makes compute wait sooner.
  CHECK(order_of({.keep = Keep::kLayerInputs, .kept = kept_of(0b1111, 3)}) ==
        std::vector<std::string>{"                        gemm qkv dw behind rmsnorm_backward",  // of the layer above
                                 "gemm down dx",                                                 //
                                 "swiglu_backward",                                              //
                                 "                        gemm down dw behind swiglu_backward",  //
                                 "wait for gemm qkv dw",                                         //
                                 "gemm gate_up dx",                                              //
                                 "rmsnorm_backward",                                             //
                                 "                        gemm gate_up dw behind rmsnorm_backward",  //
                                 "                        gemm o dw behind rmsnorm_backward",        //
                                 "gemm o dx",                                                        //
                                 "attention_backward",                                               //
                                 "rope",                                                             //
                                 "wait for gemm gate_up dw",                                         //
                                 "gemm qkv dx",                                                      //
                                 "rmsnorm_backward"});
}

TEST_CASE("whatever layers keep, no operation overwrites what a weight gradient may still read, and the bits stay") {
  for (const std::string name : {"llama_gqa_untied", "qwen2_gqa_tied", "qwen3_gqa_untied"}) {
    const ModelConfig config = config_of(name);
    const auto comm = make_single_comm();
    SmallModel in_order(config, *comm, {.compute = DType::kBF16});
    const std::vector<char> expected = bits_of(in_order);
    for (size_t subset = 0; subset < size_t{1} << kKeptTensors.size(); ++subset) {
      for (const int64_t layers : {kLayers - 1, int64_t{1}}) {
        SmallModel small(config, *comm,
                         {.compute = DType::kBF16,
                          .keep = Keep::kLayerInputs,
                          .kept = kept_of(subset, layers),
                          .weight_gradients = WeightGradients::kConcurrent});
        StreamRaces races;
        const Observation seen(*small.backend.device, races);
        INFO(name << ", kept in " << layers << " layers: subset " << subset);
        CHECK((bits_of(small) == expected));
        CHECK(races.races() == std::vector<std::string>{});
        CHECK(races.calls("weight gradients") == 2 * 4 * kLayers);
      }
    }
  }
}

TEST_CASE("a reduction waits for its unit's weight gradients, and they for the reduction of what was in the buffer") {
  const ModelConfig config = config_of("llama_gqa_untied");
  for (const UnitSize unit : {UnitSize::kLayer, UnitSize::kProjection}) {
    for (const ShardingPolicy& policy : {ShardingPolicy{}, ShardingPolicy{.reduce_once = true},
                                         ShardingPolicy{.kept_layers = 1}, ShardingPolicy{.overlap = false}}) {
      for (const bool checksums : {false, true}) {
        RecordingComm comm;
        SmallModel small(config, comm,
                         {.weight_gradients = WeightGradients::kConcurrent, .unit = unit, .policy = policy});
        std::vector<int32_t> sums(2 * small.table.units.size());
        if (checksums) {
          small.parameters.record_contributions(
              Tensor(sums.data(), DType::kI32, Shape{std::ssize(small.table.units), 2}));
        }
        StreamRaces races;
        const Observation seen(*small.backend.device, races);
        small.parameters.begin_step();
        run_two(small);
        INFO("projections " << (unit == UnitSize::kProjection) << ", reduced once " << policy.reduce_once << ", kept "
                            << policy.kept_layers << ", overlap " << policy.overlap << ", checksums " << checksums);
        CHECK(races.races() == std::vector<std::string>{});
        CHECK((races.calls("reduce") > 0) == policy.overlap);
      }
    }
  }
}

TEST_CASE("events are few and used again: a wait for one of many GEMMs is never too early; a broken pass leaves none") {
  constexpr int64_t kGemms = 20;
  const Backend backend = make_cpu_backend();
  MemoryPlan plan;
  const auto x_slot = plan.add("x", DType::kF32, Shape{kGemms, 16}), y_slot = plan.add("y", DType::kF32, Shape{4, 4});
  const Arena arena(plan, *backend.device);
  const auto compute = backend.device->make_stream({.name = "compute"});
  WeightGradientStream gradients;
  gradients.commit(*backend.device);
  const auto operand = [&](int64_t i) { return arena[x_slot].rows(i, i + 1).reshape({4, 4}); };
  const auto enqueue_all = [&] {
    for (int64_t i = 0; i < kGemms; ++i) {
      gradients.enqueue(*backend.ops, *compute, {.a = operand(i), .b = operand(i), .c = arena[y_slot]});
    }
  };
  {
    StreamRaces races;
    const Observation seen(*backend.device, races);
    enqueue_all();
    for (const int64_t i : {0, 7, 8, 19}) {
      gradients.wait_for_readers(*compute, operand(i));
      backend.ops->fill(*compute, {.x = operand(i), .value = 1});
    }
    CHECK(races.races() == std::vector<std::string>{});
  }
  enqueue_all();
  gradients.begin_pass();
  Order order(*compute);
  const Observation seen(*backend.device, order);
  for (int64_t i = 0; i < kGemms; ++i) gradients.wait_for_readers(*compute, operand(i));
  gradients.join(*compute);
  CHECK(order.entries == std::vector<std::string>{});
}

TEST_CASE("the plan has a gradient of mid with weight gradients on a second stream alone") {
  const ModelConfig config = config_of("llama_gqa_untied");
  const auto bytes = [&](Keep keep, WeightGradients gradients) {
    MemoryPlan plan;
    const ActivationPlan activations(config, 100, 0, DType::kBF16, keep, {}, plan, gradients);
    return plan.total_bytes();
  };
  for (const Keep keep : {Keep::kBackward, Keep::kLayerInputs}) {
    CHECK(bytes(keep, WeightGradients::kConcurrent) - bytes(keep, WeightGradients::kInOrder) ==
          committed_bytes(DType::kBF16, {100, config.hidden_size}));
  }
  CHECK(bytes(Keep::kNothing, WeightGradients::kConcurrent) == bytes(Keep::kNothing, WeightGradients::kInOrder));
}
