// Others may have written the files of a run's directory: pipes and endless files are refused by name.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "report/page.h"
#include "report/run_report.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Matchers::Contains;

TEST_CASE("a metrics.jsonl of NULs without end is refused by name") {
  const TempDir dir;
  write_text_atomically(dir.file("metrics.jsonl"), "{\"step\":1,\"tokens\":1}\n", Kind::kBug);
  std::ofstream(dir.file("metrics.jsonl"), std::ios::app) << "x";
  std::filesystem::resize_file(dir.file("metrics.jsonl"), uintmax_t{1} << 31);
  CHECK_THROWS_WITH(read_page_run(dir.path(), {}),
                    Contains(dir.file("metrics.jsonl")) && Contains("a line of more than"));
}

TEST_CASE("a file of the watchdog that is a pipe is refused by name, and is not waited for") {
  const TempDir dir;
  write_text_atomically(dir.file("metrics.jsonl"), "{\"step\":1,\"tokens\":1}\n", Kind::kBug);
  REQUIRE(::mkfifo(dir.file("suspects.txt").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_report(dir.path()), Contains(dir.file("suspects.txt")));
  REQUIRE(::mkfifo(dir.file("hang-1.txt").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_report(dir.path()), Contains(dir.file("hang-1.txt")));
}
