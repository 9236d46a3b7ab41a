// Memory of each class of a plan's buffers in real steps, as pages that the kernel has given to it. The device here
// takes its memory untouched, so a page exists only once something was written to it.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "base/error.h"
#include "support/ranks.h"
#include "train/random_batch.h"
#include "train/run_plan.h"
#include "train/state_slices.h"

using namespace tokamak;

namespace {

struct Block {
  std::byte* memory;
  int64_t bytes;
};

class UntouchedDevice : public CpuDevice {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind) override {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, flags, -1, 0);
    TOKAMAK_CHECK(memory != MAP_FAILED, "no memory of ", bytes, " bytes");
    madvise(memory, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);  // so that resident pages of 4 KiB can be counted
    blocks.push_back({static_cast<std::byte*>(memory), bytes});
    return blocks.back().memory;
  }
  void release(std::byte* memory, int64_t bytes, MemoryKind) noexcept override {
    finish_streams();  // a gather of the next step may be under way
    munmap(memory, static_cast<size_t>(bytes));
  }
  std::vector<Block> blocks;  // in order
};

// Gives out another device's blocks again: an arena on it has the same buffers under the same names.
class SameBlocks : public Allocator {
 public:
  explicit SameBlocks(const std::vector<Block>& blocks) : blocks_(blocks) {}
  std::byte* allocate(int64_t, MemoryKind) override { return blocks_.at(next_++).memory; }
  void release(std::byte*, int64_t, MemoryKind) noexcept override {}

 private:
  const std::vector<Block>& blocks_;
  size_t next_ = 0;
};

// Returns the bytes of a buffer that are in resident pages.
int64_t resident_bytes_of(const Tensor& buffer) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const auto begin = static_cast<int64_t>(reinterpret_cast<intptr_t>(buffer.data())), end = begin + buffer.bytes();
  const int64_t first = begin / page * page;
  std::vector<unsigned char> pages(static_cast<size_t>((end - first + page - 1) / page));
  const int asked = mincore(reinterpret_cast<void*>(first), static_cast<size_t>(end - first), pages.data());
  TOKAMAK_CHECK(asked == 0, "mincore");
  int64_t bytes = 0;
  for (size_t p = 0; p < pages.size(); ++p) {
    const int64_t at = first + static_cast<int64_t>(p) * page;
    if ((pages[p] & 1) != 0) bytes += std::min(end, at + page) - std::max(begin, at);
  }
  return bytes;
}

// This rank's gradient slices are sharded, whole units are not; the exchange's buffers are a class of their own.
std::string class_of(const std::string& name) {
  if (name == "gradients/slices") return name;
  if (name == "gradients/reduced" || name == "gradients/communication") return "exchange";
  return name.substr(0, name.find('/'));
}

struct Bytes {
  int64_t planned = 0, used = 0;
};

int64_t used_in_all(const std::map<std::string, Bytes>& classes) {
  int64_t used = 0;
  for (const auto& [name, bytes] : classes) used += bytes.used;
  return used;
}

constexpr int64_t kLayers = 6;

RunConfig config_of(const ParallelismOptions& parallelism, const ActivationCheckpointOptions& recompute) {
  RunConfig config;
  config.model.hidden_size = 256;
  config.model.intermediate_size = 704;
  config.model.num_hidden_layers = kLayers;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.vocab_size = 4096;
  config.training.micro_batch_size = {2};
  config.checkpoint.async = true;
  config.parallelism = parallelism;
  config.activation_checkpoint = recompute;
  return config;
}

class MeasuredRun {
 public:
  MeasuredRun(World& world, const RunConfig& config)
      : groups_(world.comm(), replicas_of(config.parallelism, world.size())),
        run_(plan_run(
            config, {.length = 128, .sequences_per_step = 4 * world.size(), .sequences_per_rank = 4, .total_steps = 1},
            groups_.mesh(), backend_, PlanFor::kTraining, INT64_MAX)),
        tokens_(run_.shape, {.vocab = config.model.vocab_size, .rank = world.rank()}) {
    run_.engine->commit();
  }

  // Two steps of two micro-batches with statistics of tensors and activations, and a snapshot.
  void steps() {
    Engine& engine = *run_.engine;
    engine.parameters().initialize(1, engine.compute());
    ActivationStatistics& activations = *engine.activation_statistics();
    for (const int64_t t : {1, 2}) {
      activations.begin(engine.compute());
      engine.model().watch(&activations);
      run_step(engine, tokens_.step(),
               {.t = t, .lr = 1e-3, .micro_batches = run_.shape.micro_batches(), .statistics = engine.statistics()});
      activations.finish(engine.compute());
      CHECK(!activations.take().activations.empty());
      CHECK(!engine.statistics()->take().weights.empty());
    }
    before_snapshot_ = blocks().size();
    snapshot_.emplace(engine);
    snapshot_->fetch();
  }

  std::map<std::string, Bytes> by_class() const {
    const MemoryPlan& plan = run_.engine->plan();
    SameBlocks same(blocks());
    const Arena arena(plan, same);
    std::map<std::string, Bytes> classes;
    for (size_t i = 0; i < plan.entries().size(); ++i) {
      const MemoryPlan::Entry& entry = plan.entries()[i];
      Bytes& bytes = classes[class_of(entry.name)];
      bytes.planned += entry.bytes();
      if (entry.taken != Taken::kLater) bytes.used += resident_bytes_of(arena[{static_cast<int64_t>(i)}]);
    }
    for (size_t b = before_snapshot_; snapshot_ && b < blocks().size(); ++b) {  // its pieces were allocated last
      const Block& piece = blocks()[b];
      classes["snapshot"].used += resident_bytes_of(Tensor(piece.memory, DType::kF32, Shape{piece.bytes / 4}));
    }
    return classes;
  }

 private:
  const std::vector<Block>& blocks() const { return static_cast<const UntouchedDevice&>(*backend_.device).blocks; }

  Backend backend_{std::make_unique<UntouchedDevice>(), std::make_unique<CpuOps>()};
  MeshGroups groups_;
  PlannedRun run_;
  RandomBatch tokens_;
  std::optional<StateSnapshot> snapshot_;
  size_t before_snapshot_ = 0;  // blocks
};

// Returns bytes by class, without the norms, which are few.
std::map<std::string, int64_t> expected_bytes(const ParallelismOptions& parallelism, int64_t ranks) {
  const int64_t layer = 256 * (256 + 2 * 128) + 256 * 256 + 3 * 256 * 704, vocabulary = 2 * 4096 * 256;
  const int64_t shards = ranks / parallelism.data_parallel_replicate_degree;
  const int64_t slice = (kLayers * layer + vocabulary) / shards;
  std::map<std::string, int64_t> bytes = {{"parameters", (4 + 2) * slice},
                                          {"optimizer", (4 + 4) * slice},
                                          {"gradients/slices", 4 * slice},
                                          {"snapshot", (4 + 4 + 4) * slice}};
  if (shards == 1) return bytes;
  // Two layers share what the others have for themselves.
  const int64_t kept = parallelism.keep_gathered.is_none() ? 0 : parallelism.keep_gathered.value;
  const int64_t weights = parallelism.zero_stage < 3 ? kLayers : kept + 2;
  const int64_t gradients = parallelism.zero_stage == 1 ? kLayers : 2;
  // Embedding and head are equally large, and share a buffer if layers do.
  bytes["gathered weights"] = 2 * (weights * layer + (weights < kLayers ? vocabulary / 2 : vocabulary));
  bytes["gradients"] = 4 * (gradients * layer + (gradients < kLayers ? vocabulary / 2 : vocabulary));
  return bytes;
}

void check_run(World& world, const ParallelismOptions& parallelism, const ActivationCheckpointOptions& recompute = {}) {
  INFO("stage " << parallelism.zero_stage << ", " << parallelism.data_parallel_replicate_degree << " replica(s)");
  MeasuredRun run(world, config_of(parallelism, recompute));
  CHECK(used_in_all(run.by_class()) < 1 << 20);  // memory that is planned and allocated is not resident yet
  run.steps();
  auto classes = run.by_class();
  for (const auto& [name, bytes] : classes) {
    INFO(name << ": " << bytes.used << " bytes used of " << bytes.planned);
    CHECK(20 * bytes.used >= 19 * bytes.planned);
  }
  for (const auto& [name, expected] : expected_bytes(parallelism, world.size())) {
    INFO(name << ": " << classes[name].used << " bytes used, " << expected << " expected");
    CHECK(20 * std::abs(classes[name].used - expected) <= expected);
  }
}

}  // namespace

RANKS_CASE("every class of memory is used as planned in stages 1, 2 and 3, and sharded state is one part in as many") {
  for (const int64_t stage : {1, 2, 3}) {
    for (const int replicas : {1, 2}) {
      if (world.size() % replicas != 0) continue;
      check_run(world, {.zero_stage = stage, .data_parallel_replicate_degree = replicas});
    }
  }
  check_run(world, {.keep_gathered = {2}});
}

RANKS_CASE("every class of memory is used as planned when activations are recomputed") {
  check_run(world, {}, {RecomputeMode::kSelective, {1 << 20}});
  check_run(world, {}, {RecomputeMode::kFull, {}});
}
