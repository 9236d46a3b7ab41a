#include "sweep/child.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/parallel_for.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

int wait_for(Child& child) {
  std::optional<int> code;
  while (!(code = child.ended())) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return *code;
}

}  // namespace

TEST_CASE("a child has its own output, code, session and devices") {
  const TempDir directory;
  const std::string output = directory.file("output");
  Child child({.words = {"sh", "-c", "echo $CUDA_VISIBLE_DEVICES; echo bad >&2; ps -o sid= -p $$; echo $$; exit 7"},
               .output = output,
               .devices = "2,3"});
  REQUIRE(wait_for(child) == 7);
  const std::vector<std::string> lines = split(read_text(output, Kind::kConfig), '\n');
  REQUIRE(lines.at(0) == "2,3");
  REQUIRE(lines.at(1) == "bad");
  REQUIRE(trim(lines.at(2)) == lines.at(3));  // it leads its session
}

TEST_CASE("a program that is not there is code 127 with its name, a signal 128 and its number") {
  const TempDir directory;
  Child missing({.words = {"/no/such/program"}, .output = directory.file("missing")});
  REQUIRE(wait_for(missing) == 127);
  REQUIRE(read_text(directory.file("missing"), Kind::kConfig) == "cannot start /no/such/program\n");
  Child asleep({.words = {"sleep", "100"}, .output = directory.file("asleep")});
  REQUIRE(!asleep.ended());
  asleep.ask_to_stop();
  REQUIRE(wait_for(asleep) == 128 + SIGUSR1);
}

TEST_CASE("a child uses the cores of its share") {
  const TempDir directory;
  Child child({.words = {"nproc"}, .output = directory.file("cores"), .cores = {available_cores() - 1}});
  REQUIRE(wait_for(child) == 0);
  REQUIRE(read_text(directory.file("cores"), Kind::kConfig) == "1\n");
}

TEST_CASE("shares cover all cores once; more children than cores share one") {
  REQUIRE(share_of(0, 2, 5) == std::vector<int>{0, 1});
  REQUIRE(share_of(1, 2, 5) == std::vector<int>{2, 3, 4});
  REQUIRE(share_of(2, 3, 2) == std::vector<int>{1});
  REQUIRE(share_of(0, 3, 2).size() == 1);
}
