#include "cli/prompts.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.h"
#include "support/temp_dir.h"

using namespace tokamak;
using namespace tokamak::cli;

namespace {

std::string written(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("prompts come in the order of options: texts, files whole, lines of JSON") {
  const TempDir directory;
  const std::string file = written(directory.path() + "/a.txt", "two\nlines \n");
  const std::string bare = written(directory.path() + "/b.txt", "no break");
  const std::string lines =
      written(directory.path() + "/c.jsonl", "{\"prompt\": \"x\\ny\"}\n\n{\"id\": 3, \"prompt\": \"\u00e9\"}\r\n");
  CHECK(read_prompts({{"first\n", "second"}, {file, bare}, {lines}}) ==
        std::vector<std::string>{"first\n", "second", "two\nlines ", "no break", "x\ny", "\u00e9"});
}

TEST_CASE("no prompts, empty ones and lines that are none are errors with their place") {
  const TempDir directory;
  CHECK_THROWS_WITH(read_prompts({}), Catch::Contains("no prompt"));
  CHECK_THROWS_WITH(read_prompts({{"a", ""}, {}, {}}), Catch::Contains("prompt 2 of 2 is empty"));
  CHECK_THROWS_WITH(read_prompts({{}, {written(directory.path() + "/empty", "\n")}, {}}),
                    Catch::Contains("prompt 1 of 1 is empty"));
  CHECK_THROWS_WITH(read_prompts({{}, {}, {written(directory.path() + "/a", "{\"prompt\": \"x\"}\n{\"prompt\"\n")}}),
                    Catch::Contains("/a:2 is not valid JSON"));
  CHECK_THROWS_WITH(read_prompts({{}, {}, {written(directory.path() + "/b", "{\"text\": \"x\"}\n")}}),
                    Catch::Contains("/b:1: 'prompt' is missing; expected a string"));
  CHECK_THROWS_WITH(read_prompts({{}, {"no/such/file"}, {}}), Catch::Contains("no/such/file"));
  CHECK_THROWS_WITH(read_prompts({{}, {"-"}, {"-"}}), Catch::Contains("twice"));
}
