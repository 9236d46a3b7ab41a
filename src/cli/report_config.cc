#include "cli/report_config.h"

#include <map>

#include "base/file.h"
#include "base/log.h"
#include "config/options_tree.h"
#include "config/yaml.h"
#include "train/run_config.h"

namespace tokamak::cli {

std::vector<ConfigEntry> read_run_config(const std::string& directory) {
  const std::string path = directory + "/config.yaml";
  std::vector<ConfigLine> lines;
  if (!exists(path)) return {};
  try {
    std::vector<Problem> problems;
    lines = config_lines(parse_yaml(read_text(path, Kind::kConfig), path, problems));
  } catch (const Error& error) {
    log::warning("the report goes without a config: ", error.what());
    return {};
  }
  std::map<std::string, std::string> standard;
  for (const ConfigLine& line : config_lines(tree_of(RunConfig{}))) standard[line.key] = line.value;
  std::vector<ConfigEntry> entries;
  for (const ConfigLine& line : lines) {
    const auto known = standard.find(line.key);
    entries.push_back({line.key, line.value, known == standard.end() ? "" : known->second});
  }
  return entries;
}

}  // namespace tokamak::cli
