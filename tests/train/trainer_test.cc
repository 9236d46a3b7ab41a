// How a run starts, saves, stops and fails, on several ranks at once.
#include "train/trainer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "comm/collective_error.h"
#include "model/flops.h"
#include "monitor/jsonl.h"
#include "support/captured_log.h"
#include "train/toy_training.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Calls `act` on every rank after `step`, in the place of evaluations.
ToyRunOptions at_step(RunConfig& config, int64_t step, const std::function<void()>& act) {
  config.training.evals = {{}};
  config.training.evals_interval = step;
  ToyRunOptions options;
  options.evals = [act](Engine&, const std::function<void()>&) {
    act();
    return std::vector<NamedValue>();
  };
  return options;
}

// Its memory counts as a GPU's, not the host's, so the state goes to checkpoints through copies.
class DiscreteDevice : public ToyDevice {
 public:
  bool uses_host_memory() const override { return false; }
};

// Reports as used what it has allocated, and what the program had before.
class LedgerDevice : public ToyDevice {
 public:
  static constexpr int64_t kProgramBytes = 1000;
  std::byte* allocate(int64_t bytes, MemoryKind kind) override {
    used_ += bytes;
    return ToyDevice::allocate(bytes, kind);
  }
  void release(std::byte* memory, int64_t bytes, MemoryKind kind) noexcept override {
    used_ -= bytes;
    ToyDevice::release(memory, bytes, kind);
  }
  int64_t used_bytes() const override { return used_; }

 private:
  std::atomic<int64_t> used_ = kProgramBytes;  // atomic: a thread allocates the snapshot's memory
};

}  // namespace

TEST_CASE("checkpoints come every so many steps, or tokens, and always at the end") {
  const ToyPlace place;
  const auto saved = [&](const std::string& name, TrainingLength interval, int64_t keep) {
    RunConfig config = place.config(name, 2);
    config.checkpoint.interval = interval;
    config.checkpoint.keep_latest = keep;
    train(2, config);
    return steps_of(place, name);
  };
  CHECK(saved("steps", TrainingLength::steps(4), 0) == std::vector<int64_t>{4, 6});
  CHECK(saved("tokens", TrainingLength::tokens(2 * 192), 0) == std::vector<int64_t>{2, 4, 6});
  CHECK(saved("always", TrainingLength::seconds(1e-9), 0) == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(saved("never", TrainingLength::seconds(0), 0) == std::vector<int64_t>{6});
  CHECK(saved("kept", TrainingLength::steps(1), 2) == std::vector<int64_t>{5, 6});
}

TEST_CASE("validations and evaluations come at their intervals and at the end, with the same loss on any ranks") {
  const ToyPlace place;
  std::map<int64_t, double> first;
  for (const int ranks : {1, 2, 3}) {
    RunConfig config = place.config(str("ranks", ranks), ranks);
    config.training.validation_interval = 4;
    config.training.evals = {{}};
    config.training.evals_interval = 3;
    ToyRunOptions options;
    options.evals = [](Engine& engine, const std::function<void()>&) {
      return std::vector<NamedValue>{{"ranks", static_cast<double>(engine.comm().size())}};
    };
    train(ranks, config, options);
    const auto losses = records(place.run(config.run.name), "validation/loss");
    REQUIRE(losses.size() == 2);
    CHECK(losses.count(4) == 1);
    if (ranks == 1) first = losses;
    CHECK(worst_difference(losses, first) < 1e-5);
    CHECK(records(place.run(config.run.name), "evals/ranks") ==
          std::map<int64_t, double>{{3, static_cast<double>(ranks)}, {6, static_cast<double>(ranks)}});
  }
}

TEST_CASE("a signal to the process stops and saves after the step, and the next start goes on") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const ToyPlace place;
    RunConfig config = place.config("run", 3);
    CHECK(train(3, config, at_step(config, 2, [=] { std::raise(signal); })) == RunEnd::kStopped);
    CHECK(steps_of(place, "run") == std::vector<int64_t>{2});
    CHECK(train(3, place.config("run", 3)) == RunEnd::kDone);
    CHECK(events(place.run("run")) == std::vector<std::string>{"start", "ready", "stop", "checkpoint", "end",  //
                                                               "start", "resume", "ready", "checkpoint", "end"});
    CHECK(records(place.run("run")).size() == 6);
  }
}

TEST_CASE("a stop before the first step leaves no checkpoint") {
  const ToyPlace place;
  std::atomic<bool> raised{false};
  ToyRunOptions options;
  options.backend = [&] {
    if (!raised.exchange(true)) std::raise(SIGTERM);  // while the run starts
    return toy_backend();
  };
  CHECK(train(2, place.config("run", 2), options) == RunEnd::kStopped);
  CHECK(steps_of(place, "run").empty());
}

TEST_CASE("a run begun from another's checkpoint goes on from its own when it is started again") {
  const ToyPlace place;
  train(2, place.config("source", 2), {.stop_at_step = 2});
  RunConfig branch = place.config("branch", 2);
  branch.checkpoint.load = place.checkpoint("source", 2);
  CHECK(train(2, branch, {.stop_at_step = 3}) == RunEnd::kStopped);
  train(2, place.config("source", 2));
  remove_tree(place.checkpoint("source", 2), Kind::kBug);
  CHECK(train(2, branch) == RunEnd::kDone);
  const auto losses = records(place.run("branch"));
  CHECK(losses.begin()->first == 3);
  CHECK(losses.size() == 4);
  CHECK((saved_state(place.checkpoint("branch", 6)) == saved_state(place.checkpoint("source", 6))));
}

TEST_CASE(
    "a start logs the memory planned and that in use once it is committed: the same but for the snapshot, to the byte") {
  const ToyPlace place;
  const RunConfig config = place.config("run", 2);
  train(2, config, {.backend = [] { return Backend{std::make_unique<LedgerDevice>(), std::make_unique<CpuOps>()}; }});
  const MetricRecord ready = last_event(place.run("run"), "ready");
  CHECK(ready.at("memory/planned") > LedgerDevice::kProgramBytes);
  RunConfig waiting = place.config("waiting", 2);
  waiting.checkpoint.async = false;  // then the run plans no snapshot
  train(2, waiting, {.backend = [] { return Backend{std::make_unique<LedgerDevice>(), std::make_unique<CpuOps>()}; }});
  const MetricRecord without = last_event(place.run("waiting"), "ready");
  CHECK(without.at("memory/planned") < ready.at("memory/planned"));
  CHECK(without.at("memory/committed") == without.at("memory/planned"));
  CHECK(ready.at("memory/committed") == without.at("memory/committed"));
  CHECK(records(place.run("run"), "memory/used").at(1) >= ready.at("memory/committed"));
}

TEST_CASE(
    "what a start and its end report of themselves: where it runs, where its time went, and the stalls of saves") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.interval = TrainingLength::steps(4);
  train(2, config);
  const std::string run = place.run("run");
  const MetricRecord start = last_event(run, "start");
  CHECK(start.at("ranks") == 2);
  CHECK(start.event->text("hosts") == host_name());  // once, though both ranks are there
  CHECK(parse_utc(start.event->text("exec")).value() <= start.time);
  const CheckpointReader saved = CheckpointReader::open(place.checkpoint("run", 4));
  CHECK(start.event->text("incarnation") == saved.manifest().incarnation);
  const MetricRecord ready = last_event(run, "ready");
  double sum = 0;
  for (const char* phase : {"data", "lock", "memory", "load", "loader"}) {
    CHECK(ready.at(str("startup/", phase)) >= 0);
    sum += ready.at(str("startup/", phase));
  }
  CHECK(ready.at("startup/seconds") == Approx(sum));
  CHECK((ready.at("total_steps") == 6 && ready.at("tokens_per_step") == 12 * 16));
  const MetricRecord save = last_event(run, "checkpoint");
  CHECK(save.at("tokens") == static_cast<double>(save.step * 12 * 16));
  CHECK(save.at("checkpoint/bytes") == static_cast<double>(saved.manifest().total_bytes()));
  CHECK((save.at("checkpoint/stall") > 0 && save.at("checkpoint/seconds") > 0));
  CHECK(last_event(run, "end").at("exit_code") == 0);
}

TEST_CASE("an error that ends a start is its last record, before and in its training") {
  const ToyPlace place;
  train(1, place.config("run"));
  RunConfig config = place.config("run");
  config.training.global_batch_tokens *= 2;
  config.training.micro_batch_size = {};
  CHECK_THROWS_AS(train(1, config), SharedError);
  CHECK(events(place.run("run")).back() == "end");
  CHECK(last_event(place.run("run"), "end").at("exit_code") == 2);
  CHECK_THAT(last_event(place.run("run"), "end").event->detail, Contains("training.global_batch_tokens is 384"));

  config = place.config("bad");
  config.optimizer.lr = 1e30;
  config.resilience.max_bad_steps = 2;
  CHECK_THROWS_AS(train(1, config), Error);
  CHECK(events(place.run("bad")) == std::vector<std::string>{"start", "ready", "non_finite", "end"});
  CHECK(last_event(place.run("bad"), "end").at("exit_code") == 7);
}

TEST_CASE("a finished run that is started again does nothing, and says what would; trained on, it ends as any other") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  train(2, config);
  const ToyState state = saved_state(place.checkpoint("run", 6));
  log::configure(0, 1, log::Level::kInfo);
  CapturedLog said;
  CHECK(train(2, config) == RunEnd::kDone);
  CHECK_THAT(said.text(),
             Contains("nothing to train: the run is done at step 6; training.max_steps above 6 trains on\n"));
  CHECK((saved_state(place.checkpoint("run", 6)) == state));
  CHECK(records(place.run("run")).size() == 6);
  config.training.max_steps = 0;
  config.training.max_tokens = 6 * 12 * 16;
  CapturedLog in_tokens;
  CHECK(train(2, config) == RunEnd::kDone);
  CHECK_THAT(in_tokens.text(), Contains("training.max_tokens above 1152 trains on\n"));
  config.training.max_tokens += 1;
  CapturedLog more;
  CHECK(train(2, config) == RunEnd::kDone);
  CHECK_THAT(more.text(), Contains("step 7/7") && !Contains("nothing to train"));
  log::configure(0, 1, log::Level::kOff);
  CHECK(records(place.run("run"), "validation/loss").count(7) == 1);
}

TEST_CASE("mfu_done counts the attention that is computed: inside documents where they are masked") {
  const ToyPlace place;
  const auto attended = [&](bool masked) {
    const std::string name = masked ? "masked" : "whole";
    RunConfig config = place.config(name);
    config.data.document_masking = masked;
    train(1, config, {.stop_at_step = 1});
    config.model.vocab_size = 61;
    const auto mfu = [&](const char* key) { return records(place.run(name), key).at(1); };
    const TokenFlops flops = token_flops(config.model);
    const double done = flops.done(16) * mfu("throughput/mfu_done") / mfu("throughput/mfu_full");
    return (done - flops.weights) / flops.per_attended;
  };
  CHECK(attended(false) == Approx(17.0 / 2));
  CHECK(attended(true) > 1);
  CHECK(attended(true) < 8);
}

TEST_CASE("the run directory holds the resolved config, and the tokenizer where the data set has one") {
  const ToyPlace place;
  train(2, place.config("run", 2), {.stop_at_step = 1});
  CHECK(read_text(place.run("run") + "/config.yaml", Kind::kBug) == "seed: 7");
  CHECK(!exists(place.run("run") + "/tokenizer.model"));
}

TEST_CASE("steps that are not finite leave the weights alone, and too many in a row end all ranks") {
  const ToyPlace place;
  RunConfig config = place.config("run", 3);
  config.optimizer.lr = 1e38;  // the second step's weights are infinite
  config.lr_scheduler.warmup = TrainingLength::none();
  config.resilience.max_bad_steps = 3;
  const SharedError error = error_of(3, config);
  CHECK(error.kind() == Kind::kNumerics);
  CHECK_THAT(error.what(), Contains("3 steps in a row were bad"));
  CHECK(records(place.run("run"), "optim/skipped_steps").rbegin()->second > 0);
  CHECK(steps_of(place, "run").empty());
}

TEST_CASE("a checkpoint that is refused while training goes on is written later; at the end it is an error of all") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  const std::string directory = place.run("run") + "/checkpoints";
  config.checkpoint.interval = TrainingLength::steps(3);
  std::atomic<int> calls{0};
  const auto remove_once = [&] {
    if (calls++ == 0) remove_tree(directory, Kind::kBug);
  };
  const SharedError error = error_of(2, config, at_step(config, 2, remove_once));
  CHECK(error.kind() == Kind::kCheckpoint);
  CHECK_THAT(error.what(),
             Contains("the state after step 6 must be saved, but its checkpoint was refused") && Contains(directory));
  const auto all = events(place.run("run"));
  CHECK(std::count(all.begin(), all.end(), "checkpoint refused") >= 2);
}

TEST_CASE("a config that its data or its machine cannot serve is one error, the same on all ranks") {
  const ToyPlace place;
  RunConfig config = place.config("run", 3);
  config.data.sources = {{place.file("nowhere")}};
  CHECK_THAT(error_of(3, config).what(), Contains("model.vocab_size is 0") && Contains(place.file("nowhere")));

  config = place.config("run", 3);
  config.training.global_batch_tokens = 16 * 10;
  CHECK_THAT(error_of(3, config).what(), Contains("3 ranks cannot share equally"));

  config = place.config("run", 2);
  config.data.max_epochs = 0.01;
  CHECK_THAT(error_of(2, config).what(), Contains("max_epochs"));

  config = place.config("run", 2);
  config.model.hidden_size = 1 << 20;
  config.model.intermediate_size = 1 << 22;
  const SharedError error = error_of(2, config);
  CHECK(error.kind() == Kind::kDevice);
  CHECK_THAT(error.what(), Contains("the run needs") && Contains("to each of 2 ranks of this node"));
  CHECK_THAT(error.hint(), Contains("training.micro_batch_size (now 6)") && Contains("activation_checkpoint.mode"));
}

TEST_CASE("a resume with another batch or other data is refused") {
  const ToyPlace place;
  train(2, place.config("run", 2), {.stop_at_step = 2});
  RunConfig config = place.config("run", 2);
  config.training.global_batch_tokens = 6 * 16;
  config.training.micro_batch_size.value = 1;
  CHECK_THAT(error_of(2, config).what(), Contains("global_batch_tokens"));
  config = place.config("run", 2);
  config.run.seed = 8;
  CHECK_THAT(error_of(2, config).what(), Contains("seed"));
}

TEST_CASE("an automatic micro-batch takes what a rank has, and leaves the numbers as they are") {
  const ToyPlace place;
  train(2, place.config("whole", 2));
  RunConfig config = place.config("auto", 2);
  config.training.micro_batch_size = {};
  train(2, config);
  CHECK((saved_state(place.checkpoint("auto", 6)) == saved_state(place.checkpoint("whole", 6))));
}

TEST_CASE("state that the host cannot touch is copied to checkpoints and back: the same bits") {
  const ToyPlace place;
  train(1, place.config("host"));
  ToyRunOptions options;
  options.backend = [] { return Backend{std::make_unique<DiscreteDevice>(), std::make_unique<CpuOps>()}; };
  RunConfig config = place.config("discrete");
  config.runtime.cuda_graphs = CudaGraphs::kOff;
  options.stop_at_step = 3;
  CHECK(train(1, config, options) == RunEnd::kStopped);
  options.stop_at_step = 0;
  CHECK(train(1, config, options) == RunEnd::kDone);
  CHECK((saved_state(place.checkpoint("discrete", 6)) == saved_state(place.checkpoint("host", 6))));
}

TEST_CASE("training.z_loss is added to the loss, and logged by itself") {
  const ToyPlace place;
  const auto last_z = [&](const std::string& name, double z_loss) {
    RunConfig config = place.config(name);
    config.training.z_loss = z_loss;
    train(1, config);
    double last = -1;
    read_records(place.run(name) + "/metrics.jsonl", [&](const MetricRecord& record) {
      if (record.has("loss/z")) last = record.at("loss/z");
    });
    return last;
  };
  CHECK(last_z("without", 0) == 0);
  CHECK(last_z("with", 0.1) > 0);
}

TEST_CASE("the options of a run reach what computes: another value, other weights") {
  const ToyPlace place;
  const std::pair<const char*, std::function<void(RunConfig&)>> changes[] = {
      {"weight decay", [](RunConfig& config) { config.optimizer.weight_decay = 0.5; }},
      {"betas",
       [](RunConfig& config) {
         config.optimizer.betas = {0.5, 0.6};
       }},
      {"eps", [](RunConfig& config) { config.optimizer.eps = 1e-2; }},
      {"z loss", [](RunConfig& config) { config.training.z_loss = 0.1; }},
      {"clipping", [](RunConfig& config) { config.training.max_grad_norm = 1e-3; }},
      {"precision", [](RunConfig& config) { config.precision.compute = Precision::kBF16; }},
      {"learning rate", [](RunConfig& config) { config.optimizer.lr *= 2; }},
      {"seed", [](RunConfig& config) { config.run.seed += 1; }},
  };
  train(1, place.config("plain"));
  const auto plain = saved_state(place.checkpoint("plain", 6)).tensors;
  for (const auto& [name, change] : changes) {
    INFO(name);
    RunConfig config = place.config(name);
    change(config);
    train(1, config);
    CHECK(saved_state(place.checkpoint(name, 6)).tensors != plain);
  }
}
