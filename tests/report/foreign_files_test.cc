// A run's directory may have been written by others: what is no file of a run is skipped, or refused by name.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/strings.h"
#include "report/page_run.h"
#include "report/run_report.h"
#include "report/trace_summary.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Matchers::Contains;

TEST_CASE(
    "a trace of other types, or nested without end, is skipped event by event; one that is no file is refused by name") {
  const TempDir dir;
  const std::string row = R"({"ph":"M","name":"thread_name","pid":0,"tid":2,"args":{"name":"stream compute"}},)"
                          "\n"
                          R"({"ph":"X","cat":"step","name":"step","pid":0,"tid":0,"ts":0,"dur":9},)"
                          "\n";
  const std::string sound = R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1,"dur":2,"args":{"flops":8}},)"
                            "\n";
  std::string others;
  for (const char* one : {R"({"ph":"X","name":"gemm","pid":"x","tid":2,"ts":1,"dur":2,"args":{}})",
                          R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1,"dur":2,"args":[8]})",
                          R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1,"dur":"2"})",
                          R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1e999,"dur":2})",
                          R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1,"dur":2,"args":{"flops":{}}})",
                          R"({"ph":3,"name":[]})", "[]"}) {
    others += str(one, ",\n");
  }
  const std::string deep = R"({"ph":"X","name":"gemm","pid":0,"tid":2,"ts":1,"dur":2,"args":{"x":)" +
                           std::string(400'000, '[') + std::string(400'000, ']') + "}},\n";
  write_text_atomically(dir.file("trace-1.json"), row + others + deep + sound, Kind::kBug);
  const std::vector<TraceSummary> traces = read_traces(dir.path());
  REQUIRE(traces.size() == 1);
  REQUIRE(traces[0].operations.size() == 1);
  CHECK((traces[0].operations[0].calls == 1 && traces[0].operations[0].flops == 8));
  REQUIRE(::mkfifo(dir.file("trace-2.json").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_traces(dir.path()), Contains(dir.file("trace-2.json")));
}

TEST_CASE("a metrics.jsonl or a trace of NULs without end is refused by name") {
  const TempDir dir;
  write_text_atomically(dir.file("metrics.jsonl"), "{\"step\":1,\"tokens\":1}\n", Kind::kBug);
  for (const char* name : {"trace-1.json", "metrics.jsonl"}) {
    std::ofstream(dir.file(name), std::ios::app) << "x";
    std::filesystem::resize_file(dir.file(name), uintmax_t{1} << 31);
    CHECK_THROWS_WITH(read_page_run(dir.path(), {}), Contains(dir.file(name)) && Contains("a line of more than"));
  }
}

TEST_CASE("a file of the watchdog that is a pipe is refused by name, and is not waited for") {
  const TempDir dir;
  write_text_atomically(dir.file("metrics.jsonl"), "{\"step\":1,\"tokens\":1}\n", Kind::kBug);
  REQUIRE(::mkfifo(dir.file("suspects.txt").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_report(dir.path()), Contains(dir.file("suspects.txt")));
  REQUIRE(::mkfifo(dir.file("hang-1.txt").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_report(dir.path()), Contains(dir.file("hang-1.txt")));
}
