#include "cli/report_config.h"

#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "config/load.h"
#include "config/options_tree.h"
#include "config/yaml.h"
#include "model/flops.h"
#include "train/run_config.h"

namespace tokamak::cli {

namespace {

void mark_required(ConfigNode& node) {
  if (is_required(node.comment) && node.type == ConfigNode::Type::kScalar) {
    node.text = "required";
    node.is_text = false;
  }
  for (ConfigNode& child : node.children) mark_required(child);
}

std::map<std::string, std::string> defaults() {
  ConfigNode tree = tree_of(RunConfig{});
  mark_required(tree);
  std::map<std::string, std::string> values;
  for (const ConfigLine& line : config_lines(tree)) values[line.key] = line.value;
  return values;
}

// 0 for a config that this version cannot read.
int64_t parameters_of(const std::string& text, const std::string& path) {
  try {
    return model_size(parse_saved_config(text, path).model).parameters;
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

std::string ReportedConfig::value_of(std::string_view key) const {
  for (const ConfigEntry& entry : entries) {
    if (entry.key == key) return entry.value;
  }
  return "";
}

ReportedConfig read_run_config(const std::string& directory) {
  const std::string path = run_files::at(directory, run_files::kConfig);
  if (!exists(path)) return {};
  ReportedConfig config;
  try {
    const std::string text = read_text(path, Kind::kConfig);
    std::vector<Problem> problems;
    const std::map<std::string, std::string> standard = defaults();
    for (const ConfigLine& line : config_lines(parse_yaml(text, path, problems))) {
      const auto known = standard.find(line.key);
      config.entries.push_back({line.key, line.value, known == standard.end() ? "" : known->second});
    }
    config.parameters = parameters_of(text, path);
  } catch (const Error& error) {
    log::warning("the report has no config: ", error.what());
    return {};
  }
  return config;
}

}  // namespace tokamak::cli
