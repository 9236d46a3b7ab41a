#include "base/process.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

using namespace tokamak;

TEST_CASE("the loaded libraries are files, each once, libc among them") {
  const std::vector<std::string> paths = loaded_libraries();
  const auto is_libc = [](const std::string& path) { return path.find("/libc.so") != std::string::npos; };
  CHECK(std::count_if(paths.begin(), paths.end(), is_libc) == 1);
  CHECK(std::is_sorted(paths.begin(), paths.end()));
  CHECK(std::adjacent_find(paths.begin(), paths.end()) == paths.end());
  for (const std::string& path : paths) CHECK(std::filesystem::is_regular_file(path));
}
