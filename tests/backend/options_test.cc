// The environment variable behind RuntimeOptions::ranks_per_gpu.
#include "backend/options.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/error.h"

using namespace tokamak;

TEST_CASE("TOKAMAK_RANKS_PER_GPU is a whole number of at least 1, or an error that names it and its value") {
  constexpr const char* kName = "TOKAMAK_RANKS_PER_GPU";
  unsetenv(kName);
  CHECK(RuntimeOptions().ranks_per_gpu == 1);
  setenv(kName, "12", 1);
  CHECK(RuntimeOptions().ranks_per_gpu == 12);
  for (const std::string text : {"2x", "", " 2", "0", "-1", "1.5", "99999999999999999999"}) {
    setenv(kName, text.c_str(), 1);
    CHECK_THROWS_WITH(RuntimeOptions(), Catch::Contains(kName + (" is '" + text + "'")));
  }
  unsetenv(kName);
}
