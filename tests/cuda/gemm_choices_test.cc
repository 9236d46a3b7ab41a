#include "cuda/gemm/choices.h"

#include <catch2/catch.hpp>

#include "backend/options.h"
#include "base/error.h"
#include "base/file.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

const std::string kAlgorithm("\x00\x7f\xff\x10", 4), kOther("abcd");

}  // namespace

TEST_CASE("an algorithm that was kept is found again in the next run") {
  const TempDir dir;
  const std::string path = dir.file("cache/deep/gemm");
  GemmChoices(path, 4).keep("8 9 10 TN", kAlgorithm);
  GemmChoices next(path, 4);
  CHECK(next.find("8 9 10 TN") == kAlgorithm);
  CHECK_FALSE(next.find("8 9 10 NN").has_value());
  next.keep("8 9 10 NN", kOther);
  next.keep("8 9 10 TN", kOther);
  const GemmChoices last(path, 4);
  CHECK(last.find("8 9 10 NN") == kOther);
  CHECK(last.find("8 9 10 TN") == kOther);
}

TEST_CASE("a file of another kind is neither believed nor overwritten") {
  const TempDir dir;
  const std::string magic = "tokamak gemm algorithms 1\n";
  for (const std::string& text : {std::string("something else\n"), std::string(), magic + "8 9 10 TN 00ff\n",
                                  magic + "8 9 10 TN 00zz00ff\n", magic + "8 9 10 TN 00ff00ff", magic + "00ff00ff\n"}) {
    const std::string path = dir.file("gemm");
    write_text_atomically(path, text, Kind::kDevice);
    GemmChoices choices(path, 4);
    CHECK_FALSE(choices.find("8 9 10 TN").has_value());
    choices.keep("8 9 10 TN", kAlgorithm);
    CHECK(choices.find("8 9 10 TN") == kAlgorithm);
    CHECK(read_text(path, Kind::kDevice) == text);
  }
}

TEST_CASE("choices that cannot be written are kept for this run") {
  GemmChoices choices("/proc/nowhere/gemm", 4);
  choices.keep("1", kAlgorithm);
  CHECK(choices.find("1") == kAlgorithm);
  GemmChoices nameless("", 4);
  nameless.keep("1", kAlgorithm);
  CHECK(nameless.find("1") == kAlgorithm);
}

TEST_CASE("GEMMs are tuned unless the run is deterministic") {
  RuntimeOptions options;
  CHECK(options.autotunes());
  options.deterministic = true;
  CHECK(!options.autotunes());
  options = {};
  options.autotune = Autotune::kFalse;
  CHECK(!options.autotunes());
}
