// The files of the repository: configs/*.yaml and docs/config.md.
#include <map>
#include <set>

#include "base/file.h"
#include "config/load.h"
#include "config/print.h"
#include "config/sample.h"
#include "model/flops.h"
#include "support/test_data.h"

using namespace tokamak;

namespace {

const std::string kRoot = source_tree();

// Those of runs; configs/prepare/ is for `tokamak data prepare`.
std::vector<std::string> configs() {
  std::vector<std::string> names = list_directory(kRoot + "/configs", Kind::kData);
  std::erase(names, "prepare");
  return names;
}

double in_units(const std::string& text) {  // "134M", "0.77 G"
  const double unit = std::map<char, double>{{'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}}.at(text.back());
  return std::stod(text) * unit;
}

}  // namespace

TEST_CASE("every config in configs/ loads, and names its run after itself") {
  std::set<std::string> names;
  for (const std::string& name : configs()) {
    CAPTURE(name);
    const RunConfig config = load_config(kRoot + "/configs/" + name, {});
    CHECK(config.run.name + ".yaml" == name);
    CHECK_FALSE(config.data.validation.empty());
    CHECK(config.model.vocab_size > 0);
    names.insert(name);
  }
  const std::set<std::string> promised = {"quickstart.yaml", "llama-125m.yaml", "llama-350m.yaml", "llama-0.5b.yaml",
                                          "llama-1b.yaml",   "llama-1.5b.yaml", "llama-8b.yaml",   "llama-29b.yaml",
                                          "llama-70b.yaml",  "olmo3-190m.yaml", "stages.yaml"};
  CHECK(names == promised);
}

TEST_CASE("the headers of configs/ count parameters and FLOPs as the program does") {
  for (const std::string& name : configs()) {
    const std::string path = str(kRoot, "/configs/", name);
    const std::string text = read_text(path, Kind::kData);
    const RunConfig config = load_config(path, {});
    // The header gives three digits, so half of the last one is the closest that can be asked.
    const auto figure = [&](const std::string& before, const std::string& after) {
      const size_t begin = text.find(before) + before.size();
      return in_units(text.substr(begin, text.find(after, begin) - begin));
    };
    CAPTURE(name);
    CHECK(figure("parameters   ", " (") ==
          Approx(static_cast<double>(model_size(config.model).parameters)).epsilon(0.005));
    const int64_t length = config.data.sequence_length;
    CHECK(figure("H S: ", "FLOP a") == Approx(token_flops(config.model).full(length)).epsilon(0.005));
    CHECK(figure("attention term: ", "FLOP a") == Approx(token_flops(config.model).causal(length)).epsilon(0.005));
  }
}

TEST_CASE("docs/config.md is what the program prints") {
  INFO("regenerate: tokamak train --config-reference > docs/config.md");
  CHECK(read_text(kRoot + "/docs/config.md", Kind::kData) == config_reference());
}

TEST_CASE("the reference has a row for every key of the printed config") {
  const std::string reference = config_reference();
  std::string mapping;  // inside a section
  for (const std::string& line : split(print_config(RunConfig{}), '\n')) {
    const std::string key(trim(std::string_view(line).substr(0, line.find(':'))));
    if (key.empty()) continue;
    CAPTURE(line);
    const size_t indent = line.find_first_not_of(' ');
    if (indent <= 2) mapping = indent == 2 && line.back() == ':' ? key + "." : "";
    if (indent == 2 && !mapping.empty()) continue;
    CHECK_THAT(reference, Catch::Contains(indent == 0 ? str("\n## ", key, "\n") : str("\n| `", mapping, key, "` | ")));
  }
}
