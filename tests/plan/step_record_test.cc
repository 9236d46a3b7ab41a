// Compares the recorded step with the formula of MFU, with a real run, and with the bytes that ranks exchange.
#include "plan/step_record.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/strings.h"
#include "comm/plan_comm.h"
#include "config/load.h"
#include "model/flops.h"
#include "model/parameters.h"
#include "optim/muon_matrices.h"
#include "plan/dry_run.h"
#include "plan/simulator.h"
#include "plan/small_run.h"
#include "support/kept.h"
#include "support/ranks.h"
#include "support/test_data.h"
#include "tensor/unit_layout.h"

using namespace tokamak;

namespace {

// The expected FLOPs of the record for `tokens` tokens of this rank: the terms of mfu_full that are computed, and those
// that it leaves out.
double flops_expected(const RunConfig& config, const BatchShape& shape, int64_t rows_behind) {
  const ModelConfig& model = config.model;
  const auto tokens = static_cast<double>(shape.sequences_per_rank * shape.length);
  const auto layers = static_cast<double>(model.num_hidden_layers), hidden = static_cast<double>(model.hidden_size);
  const int64_t normed = model.qk_norm == QkNormKind::kAll    ? model.q_width() + model.kv_width()
                         : model.qk_norm == QkNormKind::kHead ? 2 * model.head_size()
                                                              : 0;
  const double vectors = hidden + layers * (2 * hidden + (model.qkv_bias ? static_cast<double>(model.qkv_width()) : 0) +
                                            static_cast<double>(normed));
  const double qkv = static_cast<double>(model.qkv_width()) * hidden;
  const double o = static_cast<double>(model.q_width()) * hidden;
  const double gate_up = 2 * static_cast<double>(model.intermediate_size) * hidden;
  double pairs = 0;  // of all layers, for one sequence
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const int64_t window = model.slides(l) ? model.sliding_window : shape.length;
    for (int64_t t = 1; t <= shape.length; ++t) pairs += static_cast<double>(std::min(t, window));
  }
  // Those of one layer, on average.
  const double scores = 2 * static_cast<double>(model.q_width()) * pairs / layers / static_cast<double>(shape.length);
  double expected = token_flops(model).weights;  // mfu_full's 6 (N - N_embedding)
  expected -= 6 * vectors;                       // no GEMM multiplies with vectors
  expected += layers * 2 * scores;               // Q K^T and P V, only pairs up to the diagonal
  expected += layers * 5 * scores;               // their four gradients, and Q K^T once more
  if (config.activation_checkpoint.mode == RecomputeMode::kFull) {
    expected += (layers - 1) * (2 * (qkv + o + gate_up) + 2 * scores);  // the forward pass again, without down
  }
  if (config.activation_checkpoint.mode == RecomputeMode::kSelective) {
    const int64_t micro_batch = shape.micro_batch * shape.length;
    const auto costs = keep_costs(model, micro_batch, shape.length, compute_dtype(config.precision));
    const KeptLayers kept = kept_layers(config.activation_checkpoint, model, micro_batch, shape.length,
                                        compute_dtype(config.precision), rows_behind);
    expected += recomputed_flops(costs, kept) / static_cast<double>(micro_batch);
  }
  return tokens * expected;
}

// The FLOPs of Muon's Newton-Schulz iterations on rank 0: for each of its matrices X of s x l, s <= l, X X^T, the
// square of that, and a product with X.
double newton_schulz_expected(const RunConfig& config, int ranks) {
  const ParamTable table = make_param_table(config.model);
  double flops = 0;
  for (const MuonMatrix& matrix : muon_matrices(table, weight_rules(config.optimizer, table), ranks)) {
    const auto s = double(std::min(matrix.rows, matrix.columns)), l = double(std::max(matrix.rows, matrix.columns));
    if (matrix.owner == 0)
      flops += double(config.optimizer.muon.steps) * (2 * s * s * l + 2 * s * s * s + 2 * s * s * l);
  }
  return flops;
}

// {name: count} of operations and copies, with their shapes.
std::map<std::string, int64_t> counts_of(const StepRecord& record) {
  std::map<std::string, int64_t> counts;
  for (const StepRecord::Distinct& call : record.calls) counts[call.text] += call.count;
  return counts;
}

}  // namespace

TEST_CASE("a recorded step has the FLOPs of mfu_full and of the terms that it leaves out, for every config and size",
          "[large]") {
  for (const auto& file : std::filesystem::directory_iterator(source_tree() + "/configs")) {
    if (file.path().extension() != ".yaml") continue;
    for (const int ranks : {1, 8, 64}) {
      RunConfig config = load_config(file.path().string(), {"runtime.backend=cpu"});
      if (config.model.vocab_size == 0) config.model.vocab_size = 4096;
      const int64_t sequences = config.training.global_batch_tokens / config.data.sequence_length;
      if (sequences % ranks != 0) continue;
      AutoInt& micro_batch = config.training.micro_batch_size;
      micro_batch.value = std::min(micro_batch.value, sequences / ranks);
      DryRun run(config, make_global_batch(config, ranks), ranks);
      const StepRecord record = run.record();
      INFO(file.path().string() << " on " << ranks);
      CHECK(record.flops() == Approx(flops_expected(config, run.shape(), run.ops().rows_behind_attention()) +
                                     newton_schulz_expected(config, ranks))
                                  .epsilon(1e-12));
      double gemms = 0, attention = 0;
      for (const RecordedGemm& gemm : gemms_of(record, run.ops()))
        gemms += static_cast<double>(gemm.count) * gemm.flops();
      for (const StepRecord::Distinct& call : record.calls) {
        if (call.name.starts_with("attention")) attention += static_cast<double>(call.count) * call.flops;
      }
      CHECK(gemms + attention == Approx(record.flops()).epsilon(1e-12));  // the head's among them, chunk by chunk
      CHECK(record.synchronizations == 0);
    }
  }
}

TEST_CASE("what selective recompute predicts is what a recorded step has: FLOPs, and bytes within the limit") {
  const BackendKind backend = GENERATE(BackendKind::kCpu, BackendKind::kCuda);
  const int64_t rows_behind = backend == BackendKind::kCuda ? 128 : 0;  // extra rows that attention may read
  RunConfig config = small_run();
  config.runtime.backend = backend;
  config.model.num_hidden_layers = 5;
  const auto planned = [&](RecomputeMode mode, AutoLimit bytes) {
    config.activation_checkpoint = {mode, bytes};
    DryRun run(config, small_batch(1, 5), 1);
    CHECK(run.record().flops() ==
          Approx(flops_expected(config, run.shape(), run.ops().rows_behind_attention())).epsilon(1e-12));
    return run.memory().total_bytes();
  };
  const int64_t full = planned(RecomputeMode::kFull, {}), none = planned(RecomputeMode::kNone, {});
  const auto costs = keep_costs(config.model, 16, 8, DType::kBF16, rows_behind);
  std::set<int64_t> sizes;
  for (int64_t bytes = 0; bytes <= none - full; bytes += (none - full) / 20) {
    INFO("kept_bytes " << bytes);
    const int64_t memory = planned(RecomputeMode::kSelective, {bytes});
    const KeptLayers kept = kept_layers(config.activation_checkpoint, config.model, 16, 8, DType::kBF16, rows_behind);
    CHECK(memory - full == kept_bytes(costs, kept));
    CHECK(memory - full <= bytes);
    sizes.insert(memory);
  }
  CHECK(sizes.size() > 15);  // more memory keeps more
  CHECK(planned(RecomputeMode::kSelective, AutoLimit::none()) == full);
  CHECK(planned(RecomputeMode::kSelective, {none - full}) == none);
  CHECK(planned(RecomputeMode::kSelective, {}) == none);  // a plan without a limit
  if (backend == BackendKind::kCuda) return;
  const int64_t between = (full + none) / 2;
  const DryRun limited(config, small_batch(1, 5), 1,
                       between + between / 7 + 8);  // an eighth stays free: a CPU's memory
  CHECK(limited.memory().total_bytes() <= between + 8);
  CHECK(limited.memory().total_bytes() > full);
}

TEST_CASE("a layer that keeps an output of a norm or of SwiGLU spares storing it a second time, and nothing else") {
  RunConfig config = small_run();
  const auto memory_traffic = [&](const KeptLayers& kept) {
    config.activation_checkpoint = {RecomputeMode::kSelective, {}, counts_of(config.model, kept)};
    DryRun run(config, small_batch(1, 2), 1);
    int64_t bytes = 0;
    for (const StepRecord::Distinct& call : run.record().calls) bytes += call.count * call.bytes;
    return bytes;
  };
  const int64_t nothing = memory_traffic({}), tokens = 2 * 8;
  for (const auto& [tensor, width] : {std::pair{kNorm1, config.model.hidden_size},
                                      {kNorm2, config.model.hidden_size},
                                      {kSwiGlu, config.model.intermediate_size}}) {
    INFO(kDecoderKeptNames[tensor]);
    for (const int64_t layers : {1, 2}) {
      KeptLayers kept;
      kept[tensor] = layers;
      CHECK(nothing - memory_traffic(kept) == layers * tokens * width * size_of(DType::kBF16));
    }
  }
}

RANKS_CASE("a dry run yields the very step that a real one takes, call by call") {
  const int ranks = world.size();
  const int replicas = ranks % 2 == 0 ? 2 : 1;
  const ActivationCheckpointOptions none, full{RecomputeMode::kFull, {}}, some{RecomputeMode::kSelective, {6000}};
  for (const auto& [recompute, sharing] : std::vector<std::pair<ActivationCheckpointOptions, ParallelismOptions>>{
           {none, {}},
           {full, {}},
           {some, {}},
           {none, {.zero_stage = 1}},
           {none, {.zero_stage = 2, .data_parallel_replicate_degree = replicas}},
           {full, {.data_parallel_replicate_degree = ranks, .reduce = ReduceWhen::kLastMicrobatch}},
           {some, {.data_parallel_replicate_degree = replicas, .keep_gathered = {1}}}}) {
    RunConfig config = small_run();
    config.activation_checkpoint = recompute;
    config.parallelism = sharing;
    DryRun dry(config, small_batch(ranks, 5), ranks);  // three micro-batches, the last of one sequence
    const StepRecord planned = dry.record();

    Backend backend = make_cpu_backend();
    const MeshGroups groups(world.comm(), replicas_of(sharing, ranks));
    PlannedRun run = plan_run(config, small_batch(ranks, 5), groups.mesh(), backend, PlanFor::kTraining, INT64_MAX);
    run.engine->commit();
    run.engine->parameters().initialize(1, run.engine->compute());
    const StepRecord real = record_step(*run.engine, run.shape);

    CHECK(counts_of(planned) == counts_of(real));
    CHECK(planned.streams == real.streams);
    CHECK(planned.synchronizations == real.synchronizations);
    REQUIRE(planned.entries.size() == real.entries.size());
    for (size_t i = 0; i < planned.entries.size(); ++i) {
      CHECK(planned.entries[i].what == real.entries[i].what);
      CHECK(planned.entries[i].stream == real.entries[i].stream);
      CHECK(planned.entries[i].which == real.entries[i].which);
    }
    CHECK(planned.exchanged() == real.exchanged());
    CHECK(planned.flops() == Approx(flops_expected(config, run.shape, 0)).epsilon(1e-12));
  }
}

namespace {

// The collectives and updates of a step in the order of the host: G gather, R reduction, A update, S the sum of the
// norm. Each names the embedding or the head (e), a layer (l) or the norms (n).
std::string order_of(const StepRecord& record, const ParamTable& table, int ranks) {
  const auto kind = [&](double elements) {
    for (const Unit& unit : table.units) {
      if (static_cast<double>(UnitLayout(unit).slice(ranks)) != elements) continue;
      return std::string(unit.kind == UnitKind::kLayer ? "l" : unit.kind == UnitKind::kNorms ? "n" : "e");
    }
    return std::string("?");
  };
  std::vector<std::string> order;
  for (const StepRecord::Entry& entry : record.entries) {
    if (entry.what != StepRecord::What::kCall) continue;
    const StepRecord::Distinct& call = record.calls[static_cast<size_t>(entry.which)];
    if (call.name == "all_gather") order.push_back("G" + kind(call.exchanged / (ranks - 1) / size_of(DType::kBF16)));
    if (call.name == "reduce_scatter") order.push_back("R" + kind(call.exchanged / (ranks - 1) / size_of(DType::kF32)));
    if (call.name == "all_reduce") order.emplace_back("S");
    if (const auto* adamw = std::get_if<AdamW>(&call.arguments)) {
      order.push_back("A" + kind(static_cast<double>(adamw->master.count())));
    }
  }
  return join(order, " ");
}

}  // namespace

TEST_CASE("gathers go a unit ahead and before the reduction behind, and those of the next step into the update") {
  RunConfig config = small_run();
  config.model.num_hidden_layers = 5;
  config.model.vocab_size = 97;  // no two units have one size
  const auto order = [&](const ParallelismOptions& sharing, int64_t micro_batches) {
    config.parallelism = sharing;
    DryRun run(config, small_batch(2, 2 * micro_batches), 2);
    return order_of(run.record(), make_param_table(config.model), 2);
  };
  // Forward gathers layers 2, 3 and 4, because the last step's end has gathered the rest. It gathers the head into the
  // embedding's buffer. Backward gathers layers 2, 1 and 0, each before the reduction of the layer two above it. Then
  // it gathers the embedding for the next micro-batch. The update gathers what comes first.
  const auto backward = [](const std::string& embedding) { return "Re Gl Rl Gl Rl Gl Rl " + embedding + "Rl Rl Re "; };
  const std::string forward = "Gl Gl Gl Ge ", norms = "Rn S ", update = "An Gn Ae Ge Al Gl Al Gl Al Al Al Ae";
  CHECK(order({}, 1) == forward + backward("") + norms + update);
  CHECK(order({}, 2) == forward + backward("Ge ") + forward + backward("") + norms + update);
  CHECK(order({.zero_stage = 2}, 1) ==
        "Re Rl Rl Rl Rl Rl Re " + norms + "An Gn Ae Ge Al Gl Al Gl Al Gl Al Gl Al Gl Ae Ge");
  // Without overlap every step has the gathers of the first, and a single update.
  CHECK(order({.overlap = false}, 1) == "Gn Ge Gl Gl Gl Gl Gl Ge " + backward("") + norms + "A?");
}

TEST_CASE("an exchange is recorded with its group, its bytes to and from other ranks, and a price of each") {
  const Backend backend = plan_cpu_backend();
  const auto world = make_plan_comm(32, *backend.device);
  const auto group = world->split([](int rank) { return rank % 8; });
  const auto stream = backend.device->make_stream({.name = "reduce"});
  float memory = 0;
  const auto f32 = [&](int64_t n) { return Tensor(&memory, DType::kF32, Shape{n}); };
  const auto half = [&](int64_t n) { return Tensor(&memory, DType::kBF16, Shape{n}); };
  StepRecorder recorder;
  const Observation watched(*backend.device, recorder);
  // The two differ only in the part that rank 0 sends to itself.
  using Transfers = std::vector<Comm::Transfer>;
  group->exchange(*stream, Transfers{{0, f32(10)}, {1, f32(20)}, {3, half(5)}},
                  Transfers{{2, half(100)}, {0, f32(10)}});
  group->exchange(*stream, Transfers{{0, f32(10)}, {1, f32(20)}, {3, half(5)}},
                  Transfers{{2, half(100)}, {0, f32(10)}});
  group->exchange(*stream, Transfers{{1, f32(30)}, {3, half(5)}}, Transfers{{2, half(100)}, {1, f32(10)}});
  const StepRecord& record = recorder.record();
  REQUIRE(record.calls.size() == 2);
  const StepRecord::Distinct &first = record.calls[0], &second = record.calls[1];
  for (const StepRecord::Distinct& call : {first, second}) {
    CHECK(call.kind == CallKind::kCollective);
    CHECK(call.name == "exchange");
    CHECK(call.text == "exchange sends F32 (30), sends BF16 (5) -> receives F32 (10), receives BF16 (100)");
    CHECK(call.bytes == 30 * 4 + 5 * 2 + 10 * 4 + 100 * 2);
    CHECK(call.ranks == 4);
    CHECK(call.stride == 8);
  }
  CHECK(first.count == 2);
  CHECK(first.exchanged == 20 * 4 + 5 * 2);
  CHECK(first.received == 100 * 2);
  CHECK(second.count == 1);
  CHECK(second.exchanged == 30 * 4 + 5 * 2);
  CHECK(second.received == 10 * 4 + 100 * 2);
  CHECK(record.exchanged() == 2 * first.exchanged + second.exchanged);

  const Machine machine = find_machine("h100");
  const SimulatedStep step = simulate(record, costs_of(record, machine, *backend.ops), {});
  const double bytes = 2 * first.received + second.received;
  CHECK(step.seconds == Approx(3 * machine.hop_seconds + bytes / peer_rate(machine, 4, 8)));
  CHECK(step.exposed_communication == Approx(step.seconds));
}
