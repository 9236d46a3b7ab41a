// What the repository ships: configs/*.yaml and docs/config.md.
#include <set>

#include "base/file.h"
#include "config/load.h"
#include "config/print.h"
#include "config/sample.h"

using namespace tokamak;

namespace {

const std::string kRoot = TOKAMAK_SOURCE;

}  // namespace

TEST_CASE("every config in configs/ loads, and names its run after itself") {
  std::set<std::string> names;
  for (const std::string& name : list_directory(kRoot + "/configs", Kind::kData)) {
    CAPTURE(name);
    const RunConfig config = load_config(kRoot + "/configs/" + name, {});
    CHECK(config.run.name + ".yaml" == name);
    CHECK_FALSE(config.data.validation.empty());
    CHECK(config.model.vocab_size > 0);
    names.insert(name);
  }
  const std::set<std::string> promised = {"quickstart.yaml", "llama-125m.yaml", "llama-350m.yaml", "llama-1b.yaml",
                                          "llama-8b.yaml",   "llama-29b.yaml",  "llama-70b.yaml"};
  CHECK(names == promised);
}

TEST_CASE("docs/config.md is what the program prints") {
  INFO("regenerate: tokamak train --config-reference > docs/config.md");
  CHECK(read_text(kRoot + "/docs/config.md", Kind::kData) == config_reference());
}

TEST_CASE("the reference has a row for every key of the printed config") {
  const std::string reference = config_reference();
  for (const std::string& line : split(print_config(RunConfig{}), '\n')) {
    const std::string_view key = trim(std::string_view(line).substr(0, line.find(':')));
    if (key.empty()) continue;
    CAPTURE(line);
    const bool is_section = line[0] != ' ';
    CHECK_THAT(reference, Catch::Contains(is_section ? str("\n## ", key, "\n") : str("\n| `", key, "` | ")));
  }
}
