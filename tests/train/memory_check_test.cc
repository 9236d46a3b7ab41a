#include "train/memory_check.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/process.h"
#include "comm/data_comm.h"
#include "comm/plan_comm.h"
#include "support/ranks.h"
#include "train/run_plan.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

class SmallDevice : public ToyDevice {
 public:
  SmallDevice(int64_t total, int64_t available) : total_(total), available_(available) {}
  int64_t total_bytes() const override { return total_; }
  int64_t available_bytes() const override { return available_; }
  int64_t startup_bytes() const override { return startup; }
  int64_t reserve_bytes() const override { return reserve; }
  int64_t startup = 0, reserve = 0;

 private:
  int64_t total_, available_;
};

class SmallGpu : public SmallDevice {
 public:
  using SmallDevice::SmallDevice;
  bool uses_host_memory() const override { return false; }
};

}  // namespace

RANKS_CASE("ranks of one node share its memory, and all plan with the smallest share of any") {
  const SmallDevice device(1200 - 12 * world.rank(), 600 - 12 * world.rank());
  const MemoryShare share = memory_share(device, world, world.comm(), {});
  const int size = world.size();
  CHECK(share.ranks_sharing == size);
  CHECK(share.total == (1200 - 12 * (size - 1)) / size);
  CHECK(share.available == (600 - 12 * (size - 1)) / size);
}

RANKS_CASE("a reserve is kept back of what is there and of what is available, and named where a plan does not fit") {
  SmallDevice device(1200, 1100);
  device.startup = 20;
  device.reserve = 60;
  const MemoryShare share = memory_share(device, world, world.comm(), {});
  const int size = world.size();
  CHECK(share.reserve == 60);
  CHECK(share.total == 1200 / size - 20 - 60);  // so that automatic choices fit what is available at the start
  CHECK(share.available == 1100 / size - 60);
  MemoryPlan plan;
  plan.add("everything", DType::kF32, Shape{1200 / 4});
  CHECK_THROWS_WITH(expect_fit(plan, device, share, {}, 1), Catch::Contains("beside 60 B reserved for code loaded"));
}

TEST_CASE("ranks on GPUs reserve for NCCL, in a plan as in a run, and one rank or CPUs do not") {
  class Gpu : public ToyDevice {
   public:
    bool uses_host_memory() const override { return false; }
  };
  CHECK(make_plan_comm(2, Gpu())->reserve_bytes() == kNcclCommunicators * kNcclReserveBytes);
  CHECK(make_plan_comm(1, Gpu())->reserve_bytes() == 0);
  CHECK(make_plan_comm(2, ToyDevice())->reserve_bytes() == 0);
}

TEST_CASE("every group of a mesh reserves for NCCL once") {
  class Gpu : public ToyDevice {
   public:
    bool uses_host_memory() const override { return false; }
  };
  const auto ranks = make_plan_comm(4, Gpu());
  const int64_t of_group = kNcclCommunicators * kNcclReserveBytes;
  CHECK(MeshGroups(*ranks, 1).mesh().reserve_bytes() == of_group);
  // Three groups reserve memory: the world, a shard group, and a replicate group, which has one stream.
  CHECK(MeshGroups(*ranks, 2).mesh().reserve_bytes() == 2 * of_group + kNcclReserveBytes);
  CHECK(MeshGroups(*ranks, 4).mesh().reserve_bytes() == of_group);  // a shard group of one rank exchanges nothing
}

RANKS_CASE(
    "what a group takes outside of the plan is kept back of what there is, of what is available the part it has yet to take") {
  class Connected : public Comm {
   public:
    explicit Connected(Comm& ranks) : ranks_(ranks) {}
    int rank() const override { return ranks_.rank(); }
    int size() const override { return ranks_.size(); }
    int64_t reserve_bytes() const override { return 100; }
    int64_t pending_bytes() const override { return 30; }

   protected:
    void do_barrier() override {}
    void do_broadcast(std::string&, int) override {}
    std::vector<std::string> do_gather_all(const std::string& bytes) override { return {bytes}; }
    int64_t do_max(int64_t value) override { return value; }
    std::unique_ptr<Comm> do_split(int) override { return nullptr; }
    void do_all_gather(Stream&, Tensor, Tensor) override {}
    void do_reduce_scatter(Stream&, const ReduceScatter&) override {}
    void do_exchange(Stream&, std::span<const Transfer>, std::span<const Transfer>) override {}
    void do_all_reduce(Stream&, Tensor) override {}

   private:
    Comm& ranks_;
  };
  Connected data(world.comm());
  const int size = world.size();
  const MemoryShare share = memory_share(SmallDevice(12000, 6000), world, data, {});
  CHECK(share.reserve == 100);
  CHECK(share.total == 12000 / size - 100);
  CHECK(share.available == 6000 / size - 30);
  CHECK(memory_share(SmallDevice(12000, 12000), world, data, {}).available == 12000 / size - 100);
}

RANKS_CASE("less is available than there is in all, whatever the device says") {
  CHECK(memory_share(SmallDevice(1200, 9000), world, world.comm(), {}).available == 1200 / world.size());
}

RANKS_CASE("an automatic micro-batch is the coarsest equal cut that fits, and one sequence where none does") {
  if (world.size() > 2) return;
  const ToyPlace place;
  RunConfig config = place.config("run", world.size());
  complete_from_data(config);
  CHECK(config.model.vocab_size == 61);
  Backend backend = toy_backend();
  config.training.micro_batch_size = {};
  const GlobalBatch batch = make_global_batch(config, world.size());
  const auto chosen = [&](int64_t bytes) {
    return plan_run(config, batch, world.comm(), backend, PlanFor::kTraining, bytes).shape.micro_batch;
  };
  const auto bytes_of = [&](int64_t micro_batch) {
    const Engine plan(engine_options(config, {.max_tokens = micro_batch * 16,
                                              .max_length = 16,
                                              .snapshot = true,
                                              .statistics = true,
                                              .activations = {"*"}}),
                      world.comm(), backend);
    return planned_bytes(plan.plan(), *backend.device);
  };
  const int64_t share = 12 / world.size();
  for (const int64_t micro_batch : {share, share / 2, share / 3, int64_t{1}}) {
    CHECK(chosen(bytes_of(micro_batch)) == micro_batch);
  }
  CHECK(chosen(bytes_of(share / 2) - 1) == share / 3);
  CHECK(chosen(0) == 1);
}

RANKS_CASE("activations are kept in what is left, of what there is and of what is available, after the batch is cut") {
  if (world.size() > 2) return;
  const ToyPlace place;
  RunConfig config = place.config("run", world.size());
  complete_from_data(config);
  Backend backend = toy_backend();
  const GlobalBatch batch = make_global_batch(config, world.size());
  const auto bytes_of = [&](int64_t bytes, int64_t available = INT64_MAX) {
    const PlannedRun run = plan_run(config, batch, world.comm(), backend, PlanFor::kTraining, bytes, available);
    return planned_bytes(run.engine->plan(), *backend.device);
  };
  const auto set_mode = [&](RecomputeMode mode) { config.activation_checkpoint = {mode, {}}; };
  set_mode(RecomputeMode::kNone);
  const int64_t none = bytes_of(0);
  set_mode(RecomputeMode::kFull);
  const int64_t full = bytes_of(0);
  REQUIRE(full < none);

  set_mode(RecomputeMode::kSelective);
  CHECK(bytes_of(INT64_MAX) == none);
  CHECK(bytes_of(0) == full);
  const int64_t enough = 2 * none;  // an eighth stays free: the memory is the host's
  CHECK(bytes_of(enough) == none);
  CHECK(bytes_of(enough, 0) == full);
  CHECK(bytes_of(0, enough) == full);
  int64_t last = full, between = 0;
  for (int64_t fill = full; fill <= none; fill += (none - full) / 10) {
    const int64_t bytes = bytes_of(fill + fill / 7 + 8);
    CHECK(bytes <= fill + 8);
    CHECK(bytes >= last);
    between += full < bytes && bytes < none ? 1 : 0;
    last = bytes;
  }
  CHECK(between > 5);
  const PlannedRun run = plan_run(config, batch, world.comm(), backend, PlanFor::kTraining, enough / 2);
  CHECK(!run.activation_checkpoint.kept_bytes.is_auto());  // a benchmark can repeat the number

  config.training.micro_batch_size = {};
  const int64_t share = 12 / world.size();
  CHECK(plan_run(config, batch, world.comm(), backend, PlanFor::kTraining, full).shape.micro_batch ==
        share);  // cut as with `full` bytes
}

RANKS_CASE("ranks of one node share the host's memory for pinned buffers, on GPUs only") {
  const SmallDevice cpu(1200, 1200);
  CHECK(memory_share(cpu, world, world.comm(), {}).host_available == INT64_MAX);
  const SmallGpu gpu(1200, 1200);
  const MemoryShare share = memory_share(gpu, world, world.comm(), {});
  CHECK(share.host_ranks == world.size());
  CHECK(share.host_available > 0);
  CHECK(share.host_available <= total_memory_bytes() / world.size());
  CHECK(share.available == 1200);  // each rank has a GPU
}

TEST_CASE("pinned buffers must fit into the host's memory, and an error names those of the node and what would help") {
  const SmallGpu gpu(1000, 1000);
  MemoryPlan plan;
  plan.add("on the GPU", DType::kF32, Shape{64});
  plan.add("snapshot/master", DType::kF32, Shape{64 << 20}, MemoryKind::kPinned, Taken::kLater);
  MemoryShare share{.total = 1000, .available = 1000, .host_available = int64_t{256} << 20, .host_ranks = 3};
  expect_fit(plan, gpu, share, {}, 1);
  CHECK_THROWS_WITH(expect_fit(plan, gpu, share, {}, 1, 5 << 20),
                    Catch::Contains("pins 256 MiB of host memory on each rank, besides 5.00 MiB to read data ahead"));
  share.host_available += 5 << 20;
  expect_fit(plan, gpu, share, {}, 1, 5 << 20);
  share.host_available -= 5 << 20;
  --share.host_available;
  try {
    expect_fit(plan, gpu, share, {}, 1);
    FAIL("it does not fit");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kDevice);
    CHECK_THAT(error.what(), Catch::Contains("pins 256 MiB of host memory on each rank, 768 MiB on a node of 3 ranks"));
    CHECK_THAT(error.hint(), Catch::Contains("fewer ranks on a node") && Catch::Contains("snapshot"));
    // checkpoint.async: false would not help.
    CHECK_THAT(error.hint(), Catch::Contains("checkpoint.async: false would not"));
  }
  // On a CPU, pinned buffers are part of its memory and count once, and checkpoint.async: false would help.
  const SmallDevice cpu(1000, 1000);
  const int64_t bytes = planned_bytes(plan, cpu);
  CHECK(bytes > (int64_t{256} << 20));
  expect_fit(plan, cpu, {.total = bytes, .available = bytes, .host_available = 0}, {}, 1);
  CHECK_THROWS_WITH(expect_fit(plan, cpu, {.total = bytes, .available = bytes - 1}, {}, 1), Catch::Contains("needs"));
  expect_fit(plan, cpu, {.total = bytes, .available = bytes + 9}, {}, 1, 9);
  CHECK_THROWS_WITH(expect_fit(plan, cpu, {.total = bytes, .available = bytes + 8}, {}, 1, 9),
                    Catch::Contains("on each rank, including 9 B to read data ahead, but"));
}

TEST_CASE("where a CPU's memory is too small, a run that saves without a snapshot needs less, and the error says so") {
  const SmallDevice cpu(1000, 1000);
  MemoryPlan plan;
  plan.add("snapshot/master", DType::kF32, Shape{640}, MemoryKind::kPinned, Taken::kLater);
  RunConfig config;
  const auto hint = [&] {
    try {
      expect_fit(plan, cpu, {.total = 1000, .available = 1000}, config, 1);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string("it fits");
  };
  config.checkpoint.async = true;
  CHECK_THAT(hint(), Catch::Contains("checkpoint.async: false"));
  config.checkpoint.async = false;
  CHECK(hint().find("checkpoint.async") == std::string::npos);
}

TEST_CASE("a plan that does not fit names both numbers and what would help, and one that fits passes") {
  const SmallDevice device(1000, 1000);
  MemoryPlan plan;
  plan.add("everything", DType::kF32, Shape{250});
  const int64_t bytes = planned_bytes(plan, device);
  RunConfig config;
  expect_fit(plan, device, {.total = bytes, .available = bytes}, config, 1);
  config.activation_checkpoint.mode = RecomputeMode::kFull;
  try {
    expect_fit(plan, device, {.total = bytes, .available = bytes - 1}, config, 1);
    FAIL("it does not fit");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kDevice);
    CHECK_THAT(error.what(), Catch::Contains(human_bytes(bytes)));
    CHECK_THAT(error.hint(), Catch::Contains("everything"));
    CHECK(error.hint().find("micro_batch_size") == std::string::npos);  // neither would help
    CHECK(error.hint().find("activation_checkpoint") == std::string::npos);
  }
  config.activation_checkpoint = {RecomputeMode::kSelective, {4096}};
  try {
    expect_fit(plan, device, {.total = bytes, .available = bytes - 1}, config, 1);
    FAIL("it does not fit");
  } catch (const Error& error) {
    CHECK_THAT(error.hint(), Catch::Contains("lower activation_checkpoint.kept_bytes (now 4.00 KiB)"));
  }
}

TEST_CASE("a plan that does not fit names the settings that keep more whole than they must") {
  const SmallDevice device(1000, 1000);
  MemoryPlan plan;
  plan.add("everything", DType::kF32, Shape{250});
  const auto hint = [&](const ParallelismOptions& parallelism) {
    RunConfig config;
    config.parallelism = parallelism;
    try {
      expect_fit(plan, device, {}, config, 1);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string("it fits");
  };
  CHECK_THAT(hint({.zero_stage = 1}), Catch::Contains("parallelism.zero_stage: 2"));
  CHECK_THAT(hint({.zero_stage = 2, .reduce = ReduceWhen::kLastMicrobatch}),
             Catch::Contains("parallelism.zero_stage: 3") && Catch::Contains("parallelism.reduce: every_microbatch"));
  CHECK_THAT(hint({.data_parallel_replicate_degree = 4, .keep_gathered = {7}}),
             Catch::Contains("parallelism.keep_gathered (now 7)") &&
                 Catch::Contains("parallelism.data_parallel_replicate_degree (now 4)"));
  CHECK(hint({}).find("parallelism") == std::string::npos);
  plan.add("gathered weights/layer", DType::kBF16, Shape{64});
  CHECK_THAT(hint({}), Catch::Contains("parallelism.unit: projection"));
  CHECK(hint({.unit = UnitSize::kProjection}).find("parallelism") == std::string::npos);
}
