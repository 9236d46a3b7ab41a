#include "base/strings.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <sstream>

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

TEST_CASE("str() prints each value as a stream does") {
  const auto streamed = [](const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  const auto same = [&](const auto&... values) {
    CHECK(((str(values) == streamed(values)) && ...));
    CHECK(str(values...) == (streamed(values) + ...));
  };
  same(std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max(), int16_t{-7}, size_t{0}, 12u, true);
  same('x', int8_t{65}, uint8_t{66}, "text", std::string("more"), std::string_view("view"),
       static_cast<const void*>("p"));
  same(0.1, 1e-9, 123456789.0, 3.0f, -0.0, std::numeric_limits<double>::infinity(), 2.5L);
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
