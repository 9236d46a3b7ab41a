#include "bench/generate_benchmark.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/replay.h"
#include "infer/kv_cache.h"
#include "model/flops.h"

namespace tokamak {

namespace {

class GenerateBenchmark {
 public:
  GenerateBenchmark(Engine& engine, const GenerateBenchmarkOptions& options)
      : engine_(engine),
        options_(options),
        config_(engine.model().config()),
        device_(*engine.backend().device),
        ops_(*engine.backend().ops),
        stream_(engine.compute()),
        gemms_(gemms_of_prompt()),
        replay_(engine.backend(), calls_of(gemms_), {}) {
    const int64_t copied = device_.uses_host_memory() ? int64_t{1} << 26 : int64_t{1} << 28;  // f32: beyond any cache
    const auto from = plan_.add("from", DType::kF32, Shape{copied}), to = plan_.add("to", DType::kF32, Shape{copied});
    arena_ = std::make_unique<Arena>(plan_, device_);
    from_ = (*arena_)[from];
    to_ = (*arena_)[to];
    ops_.fill(stream_, {.x = from_, .value = 1});
  }

  GenerateTimes run() {
    std::vector<GenerateTimes> rounds;
    prefill();  // a first call compiles kernels and touches memory
    for (int64_t round = 0; round < options_.rounds; ++round) {
      GenerateTimes times{.options = options_};
      times.weight_bytes = weight_bytes();
      times.copy_rate = double(from_.bytes()) / seconds_of([&] { copy(); });
      times.prompt_rate = double(options_.sequences * options_.prompt) / seconds_of([&] { prefill(); });
      times.prompt_gemm_rate = double(options_.prompt) / gemm_seconds();
      times.decode_seconds = seconds_of([&] { decode(); }) / double(options_.tokens);
      rounds.push_back(times);
    }
    const auto middle = rounds.begin() + std::ssize(rounds) / 2;
    std::nth_element(rounds.begin(), middle, rounds.end(), [](const GenerateTimes& a, const GenerateTimes& b) {
      return a.share_of_copy() < b.share_of_copy();
    });
    return *middle;
  }

 private:
  template <class Work>
  double seconds_of(const Work& work) {
    stream_.synchronize();
    const Stopwatch watch;
    work();
    stream_.synchronize();
    return watch.seconds();
  }

  // Makes the fastest copy within this device's memory, by memcpy or by a kernel.
  void copy() {
    if (device_.uses_host_memory()) {
      device_.copy_to_host(stream_, from_, to_.data());
    } else {
      ops_.cast(stream_, {.src = from_, .dst = to_});
    }
  }

  double weight_bytes() const {
    const ModelSize size = model_size(config_);
    const DType compute = engine_.parameters().weights().dtype();
    return double((size.parameters - size.lookup_parameters) * size_of(compute));
  }

  void run_model(const std::vector<int32_t>& slots, int64_t tokens) {
    std::vector<int32_t> ids, bounds = {0};
    for (size_t s = 0; s < slots.size(); ++s) {
      for (int64_t t = 0; t < tokens; ++t) {
        ids.push_back(static_cast<int32_t>(random_.word(drawn_++) % config_.vocab_size));
      }
      bounds.push_back(static_cast<int32_t>(ids.size()));
    }
    forward_cached(engine_.model(), stream_, {ids, bounds, slots, {}}, engine_.cache());
  }

  void prefill() {
    for (int32_t slot = 0; slot < options_.sequences; ++slot) {
      engine_.cache().clear(slot);
      run_model({slot}, options_.prompt);
    }
  }

  // Decodes as generation does: the host reads the logits of each token before the next one.
  void decode() {
    std::vector<int32_t> slots(options_.sequences);
    std::iota(slots.begin(), slots.end(), 0);
    std::vector<float> logits(options_.sequences * config_.vocab_size);
    for (int64_t t = 0; t < options_.tokens; ++t) {
      run_model(slots, 1);
      device_.copy_to_host(stream_, engine_.cache().logits(options_.sequences), logits.data());
      stream_.synchronize();
    }
  }

  // Returns the GEMMs of one prompt. It leaves out the head, which takes only the prompt's last token.
  std::vector<RecordedGemm> gemms_of_prompt() {
    StepRecorder recorder;
    {
      const Observation watched(device_, recorder);
      engine_.cache().clear(0);
      run_model({0}, options_.prompt);
    }
    std::vector<RecordedGemm> gemms = gemms_of(recorder.record(), ops_);
    std::erase_if(gemms, [](const RecordedGemm& gemm) { return gemm.name == "head"; });
    return gemms;
  }

  double gemm_seconds() {
    double seconds = 0;
    for (const RecordedGemm& gemm : gemms_) {
      replay_.prepare(gemm.call);
      seconds += replay_.seconds(kSecondsOfGemm) * double(gemm.count);
    }
    return seconds;
  }

  Engine& engine_;
  GenerateBenchmarkOptions options_;
  const ModelConfig& config_;
  Device& device_;
  Ops& ops_;
  Stream& stream_;
  RandomStream random_{1, "generate benchmark"};
  uint64_t drawn_ = 0;
  std::vector<RecordedGemm> gemms_;
  Replay replay_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
  Tensor from_, to_;
};

}  // namespace

GenerateTimes benchmark_generate(Engine& engine, const GenerateBenchmarkOptions& options) {
  return GenerateBenchmark(engine, options).run();
}

}  // namespace tokamak
