#include "cli/report_config.h"

#include <map>

#include "base/file.h"
#include "base/log.h"
#include "config/options_tree.h"
#include "config/yaml.h"
#include "train/run_config.h"

namespace tokamak::cli {

namespace {

struct ConfigLine {
  std::string key, value;
};

// Lists of plain values are one line; of mappings, each key is.
void append_lines(const ConfigNode& node, const std::string& path, std::vector<ConfigLine>& lines) {
  std::vector<std::string> items;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const ConfigNode& child = node.children[i];
    if (node.type == ConfigNode::Type::kMap)
      append_lines(child, join_path(path, child.key), lines);
    else if (child.type == ConfigNode::Type::kScalar)
      items.push_back(child.text);
    else
      append_lines(child, str(path, "[", i, "]"), lines);
  }
  if (node.type == ConfigNode::Type::kList && items.size() == node.children.size())
    lines.push_back({path, str("[", join(items, ", "), "]")});
  else if (node.type == ConfigNode::Type::kScalar || node.type == ConfigNode::Type::kNull)
    lines.push_back({path, node.text});
}

}  // namespace

std::vector<ConfigEntry> read_run_config(const std::string& directory) {
  const std::string path = directory + "/config.yaml";
  std::vector<ConfigLine> lines, defaults;
  if (!exists(path)) return {};
  try {
    std::vector<Problem> problems;
    append_lines(parse_yaml(read_text(path, Kind::kConfig), path, problems), "", lines);
  } catch (const Error& error) {
    log::warning("the report goes without a config: ", error.what());
    return {};
  }
  append_lines(tree_of(RunConfig{}), "", defaults);
  std::map<std::string, std::string> standard;
  for (const ConfigLine& line : defaults) standard[line.key] = line.value;
  std::vector<ConfigEntry> entries;
  for (const ConfigLine& line : lines) {
    const auto known = standard.find(line.key);
    entries.push_back({line.key, line.value, known == standard.end() ? "" : known->second});
  }
  return entries;
}

}  // namespace tokamak::cli
