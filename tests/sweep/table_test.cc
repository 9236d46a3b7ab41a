#include "sweep/table.h"

#include <catch2/catch.hpp>

#include "base/file.h"
#include "config/load.h"
#include "config/print.h"
#include "monitor/jsonl.h"
#include "monitor/run_status.h"
#include "support/run_records.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// A run's directory with two validations and a restart that trained steps 11 to 20 again.
class RecordedRun {
 public:
  explicit RecordedRun(std::vector<double> losses) {
    const RunConfig config = parse_config(
        "model: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 1, vocab_size: 10}\n"
        "data: {sequence_length: 8, sources: [{path: a}], validation: [{path: b}]}\n"
        "training: {max_steps: 40, global_batch_tokens: 2000}\n"
        "run: {seed: 3}\n",
        "c.yaml", {});
    write_text_atomically(path() + "/config.yaml", print_config(config), Kind::kConfig);
    JsonlFile file(path() + "/metrics.jsonl");
    MetricRecord first = start(0);
    first.event->texts.push_back({"program", "tokamak 1"});
    file.write(first);
    file.write(ready(1, 0, 40));
    int64_t step = 0;
    for (const double loss : losses) {
      step += 10;
      file.write(interval(double(step), step, loss));
      file.write({.step = step,
                  .time = at(double(step)),
                  .values = {count_value("tokens", 2000 * step), {"validation/loss", loss}}});
    }
  }
  const std::string& path() const { return directory_.path(); }

  SweepRow row(RunStatus::State state, int code, const std::string& cause = "") const {
    write_run_status(
        path(), {.state = state, .code = code, .step = 40, .total_steps = 40, .incarnation = "one", .cause = cause});
    SweepRow row{.id = "x"};
    read_records_of_run(row, path());
    return row;
  }

 private:
  TempDir directory_;
};

using State = RunStatus::State;

}  // namespace

TEST_CASE("a row has the run's own numbers") {
  const SweepRow row = RecordedRun({5, 4, 3, 2}).row(State::kDone, 0);
  REQUIRE(row.status == SweepStatus::kDone);
  REQUIRE(row.loss == 2.0);
  REQUIRE(row.loss_last3 == Approx(3.0));
  REQUIRE(row.steps == 40);
  REQUIRE(row.tokens == 80000);
  REQUIRE(row.batch_tokens == 2000);
  REQUIRE(row.seed == 3);
  REQUIRE(row.program == "tokamak 1");
  REQUIRE(row.head == 80);
  REQUIRE(*row.tokens_per_second > 0);
  // 6 (body + head) + 12 L H T FLOPs a token, with T = 8
  REQUIRE(row.flops_full == Approx(80000.0 * (6.0 * double(row.body + row.head) + 12 * 8 * 8)));
}

TEST_CASE("the status is the run's; exit code 7 is divergence, and so is a last validation that is not finite") {
  const RecordedRun run({5, 4, 3, 2});
  REQUIRE(run.row(State::kStopped, 75).status == SweepStatus::kStopped);
  REQUIRE(run.row(State::kFailed, 7).status == SweepStatus::kDiverged);
  const SweepRow failed = run.row(State::kFailed, 4, "disk full");
  REQUIRE(failed.status == SweepStatus::kFailed);
  REQUIRE(failed.exit_code == 4);
  REQUIRE(failed.error == "disk full");
  REQUIRE(RecordedRun({5, 4, 3, NAN}).row(State::kDone, 0).status == SweepStatus::kDiverged);
}

TEST_CASE("a directory without records leaves a row as it was") {
  const TempDir empty;
  SweepRow row{.id = "x", .body = 5};
  read_records_of_run(row, empty.path());
  REQUIRE(row.status == SweepStatus::kWaiting);
  REQUIRE(row.body == 5);
}

TEST_CASE("a table reads back as it was written; a bad line is named") {
  const TempDir directory;
  const std::string path = directory.file("table.jsonl");
  REQUIRE(read_table(path).empty());
  const SweepRow full{.id = "lr=0.1_ab",
                      .overrides = {{"optimizer.lr", "0.1"}},
                      .seed = -4,
                      .body = 1,
                      .head = 2,
                      .total = 3,
                      .tokens = 4,
                      .flops_full = 1e30,
                      .batch_tokens = 6,
                      .steps = 7,
                      .loss = 0.1 + 0.2,
                      .loss_last3 = {},
                      .tokens_per_second = 1.5,
                      .status = SweepStatus::kFailed,
                      .exit_code = 3,
                      .error = "it \"broke\"",
                      .program = "tokamak"};
  write_table(path, {full, {.id = "y"}});
  const std::vector<SweepRow> rows = read_table(path);
  REQUIRE(rows.size() == 2);
  REQUIRE(rows[0].loss == full.loss);
  REQUIRE(!rows[0].loss_last3);
  REQUIRE(rows[0].seed == -4);
  REQUIRE(rows[0].overrides.at(0).text == "0.1");
  REQUIRE(rows[0].status == SweepStatus::kFailed);
  REQUIRE(rows[0].error == full.error);
  const std::string text = read_text(path, Kind::kConfig);
  write_text_atomically(path, text + "{\"id\": 5}\n", Kind::kConfig);
  REQUIRE_THROWS_WITH(read_table(path), Contains("table.jsonl:3"));
  write_table(path, {{.id = "../../etc"}});
  REQUIRE_THROWS_WITH(read_table(path), Contains("name of a directory"));
}
