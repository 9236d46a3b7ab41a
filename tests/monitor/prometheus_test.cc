#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "monitor/sink.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("the newest values, each with help and type, as shortly as they are read back alike") {
  const TempDir dir;
  const auto file = prometheus_sink(dir.file("t.prom"), {.name = "a \"b\\c\nd", .total_steps = 50}, "n1");
  file->write({.step = 10,
               .time = 1769862896007,
               .values = {count_value("tokens", int64_t{1} << 52), {"loss/avg", 3}},
               .eta = 12.5});
  file->write({.step = 20,
               .time = 1769862897000,
               .values = {{"loss/avg", 0.1}, {"evals/arc-easy/acc", std::numeric_limits<double>::quiet_NaN()}}});
  file->write({.step = 20, .time = 1769862898000, .event = RunEvent{"checkpoint", "", {}}});
  file->write({.step = 20, .time = 1769862898000, .event = RunEvent{"checkpoint", "", {}}});
  file->write(
      {.step = 20, .time = 1769862899000, .event = RunEvent{"end", "", {}}, .values = {count_value("exit_code", 75)}});
  const std::string labels = R"({run="a \"b\\c\nd",host="n1")";
  std::string expected;
  const auto gauge = [&](const std::string& name, const std::string& help, const std::string& value) {
    expected += "# HELP tokamak_" + name + " " + help + "\n# TYPE tokamak_" + name + " gauge\ntokamak_" + name +
                labels + "} " + value + "\n";
  };
  gauge("end_exit_code", "end/exit_code", "75");
  gauge("eta_seconds", "to the end of the run", "12.5");
  gauge("evals_arc_easy_acc", "evals/arc-easy/acc", "NaN");
  gauge("loss_avg", "loss/avg", "0.1");
  gauge("record_timestamp_seconds", "when the newest record was made", "1769862899");
  gauge("running", "1 until the run has recorded its end", "0");
  gauge("step", "of the newest record", "20");
  gauge("tokens", "tokens", "4503599627370496");
  gauge("total_steps", "steps of the run", "50");
  expected +=
      "# HELP tokamak_events_total events since the run's newest start\n# TYPE tokamak_events_total counter\n"
      "tokamak_events_total" +
      labels + ",event=\"checkpoint\"} 2\n" + "tokamak_events_total" + labels + ",event=\"end\"} 1\n";
  CHECK(read_text(dir.file("t.prom"), Kind::kBug) == expected);
  CHECK(list_directory(dir.path(), Kind::kBug) == std::vector<std::string>{"t.prom"});  // nothing is left beside it
}

TEST_CASE("no name can end its line of help and go on as another program's metric") {
  const TempDir dir;
  const auto file = prometheus_sink(dir.file("t.prom"), {}, "n1");
  file->write({.step = 1, .values = {{"evals/a\\\"\nnode_load1 99", 1}}});
  const std::string text = read_text(dir.file("t.prom"), Kind::kBug);
  CHECK_THAT(text, Contains("# HELP tokamak_evals_a___node_load1_99 evals/a\\\\\"\\nnode_load1 99\n"));
  CHECK_THAT(text, !Contains("\nnode_load1"));
}

TEST_CASE("a link planted under the name of the file, in a directory of many users, is replaced and not followed") {
  const TempDir dir;
  write_text_atomically(dir.file("mine"), "precious", Kind::kBug);
  for (const char* name : {"t.prom", "t.prom.tmp"}) std::filesystem::create_symlink(dir.file("mine"), dir.file(name));
  const auto file = prometheus_sink(dir.file("t.prom"), {}, "n1");
  file->write({.step = 1});
  CHECK(read_text(dir.file("mine"), Kind::kBug) == "precious");
  CHECK(std::filesystem::is_regular_file(entry_at(dir.file("t.prom"))));
}

TEST_CASE("the file is replaced, never written to: whoever has it open reads the old one to its end") {
  const TempDir dir;
  const auto file = prometheus_sink(dir.file("t.prom"), {}, "n1");
  file->write({.step = 1});
  const InputFile open(dir.file("t.prom"), Kind::kBug);
  const std::string before = read_text(dir.file("t.prom"), Kind::kBug);
  file->write({.step = 2});
  std::string seen(static_cast<size_t>(open.size()), '\0');
  open.read_at(0, std::as_writable_bytes(std::span(seen)));
  CHECK(seen == before);
  CHECK_THAT(read_text(dir.file("t.prom"), Kind::kBug), Contains("tokamak_step{run=\"\",host=\"n1\"} 2\n"));
}

TEST_CASE("a path without a directory is an error at once, a directory that goes away one of its records") {
  const TempDir dir;
  CHECK_THROWS_AS(prometheus_sink(dir.file("no/t.prom"), {}, "n1"), Error);
  make_directories(dir.file("there"), Kind::kBug);
  const auto file = prometheus_sink(dir.file("there/t.prom"), {}, "n1");
  remove_tree(dir.file("there"), Kind::kBug);
  CHECK_THROWS_AS(file->write({.step = 1}), Error);
  make_directories(dir.file("there"), Kind::kBug);
  file->write({.step = 2});
  CHECK(exists(dir.file("there/t.prom")));
}
