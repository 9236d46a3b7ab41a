#include "base/strings.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("numbers for people") {
  CHECK(human_count(999) == "999");
  CHECK(human_count(1234567) == "1.23M");
  CHECK(human_si(967e9, "FLOP/s") == "967 GFLOP/s");
  CHECK(human_si(3.44e15, "FLOP") == "3.44 PFLOP");
  CHECK(human_si(12, "FLOP") == "12 FLOP");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_duration(65) == "1:05");
  CHECK(human_duration(3725) == "1:02:05");
}

TEST_CASE("the nearest known word is offered, a far one is not") {
  CHECK(nearest("hiden_size", {"hidden_size", "head_dim"}) == "hidden_size");
  CHECK(nearest("lr_schedule", {"lr_scheduler", "optimizer"}) == "lr_scheduler");
  CHECK(nearest("banana", {"hidden_size", "head_dim"}).empty());
}

TEST_CASE("split keeps empty fields, trim drops surrounding space") {
  CHECK(split("a..b", '.') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", '.') == std::vector<std::string>{""});
  CHECK(trim(" \t a b \n") == "a b");
  CHECK(trim(" \n").empty());
}

TEST_CASE("a word is quoted where a shell would take it for more than a word") {
  for (const char* plain : {"train", "runs/a-b_c.yaml", "optimizer.lr=+3e-4", "a,b:c@d%"})
    CHECK(shell_word(plain) == plain);
  CHECK(shell_word("") == "''");
  CHECK(shell_word("data.sources=[{path: x}]") == "'data.sources=[{path: x}]'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
}
