// Command-line overrides: KEY=VALUE.
#include "base/printable.h"
#include "config/yaml.h"

namespace tokamak {

namespace {

// The node at one step of a path, created if allowed; otherwise nullptr, and a problem is recorded.
ConfigNode* step_into(ConfigNode& node, const PathStep& step, const std::string& path, const std::string& place,
                      std::vector<Problem>& problems) {
  if (step.index >= 0) {
    const bool is_list = node.type == ConfigNode::Type::kList;
    if (is_list && step.index < std::ssize(node.children)) return &node.children[step.index];
    problems.push_back({place, str("key '", printable(path), "' is ", node.shown(), ", which has no item ", step.index),
                        is_list ? "items count from 0; to lengthen a list, give it whole: KEY=[...]" : ""});
    return nullptr;
  }
  if (ConfigNode* child = node.child(step.key)) return child;
  if (node.type == ConfigNode::Type::kNull) node.type = ConfigNode::Type::kMap;
  if (node.type != ConfigNode::Type::kMap) {
    problems.push_back(
        {place, str("key '", printable(path), "' is ", node.shown(), ", which has no key '", printable(step.key), "'"),
         ""});
    return nullptr;
  }
  ConfigNode& made = node.children.emplace_back();
  made.key = step.key;
  made.place = place;
  return &made;
}

}  // namespace

void apply_override(ConfigNode& root, const std::string& override_text, std::vector<Problem>& problems) {
  const std::string place = "command line: " + printable(override_text, 120);
  const size_t equals = override_text.find('=');
  const std::vector<PathStep> path = parse_path(override_text.substr(0, equals));
  if (equals == std::string::npos || path.empty()) {
    problems.push_back({place, "an override must be KEY=VALUE", "for example optimizer.lr=3e-4"});
    return;
  }
  ConfigNode* node = &root;
  std::vector<PathStep> walked;
  for (const PathStep& step : path) {
    node = step_into(*node, step, printed_path(walked), place, problems);
    if (node == nullptr) return;
    walked.push_back(step);
  }
  ConfigNode value = parse_yaml_value(override_text.substr(equals + 1), place, problems);
  value.key = node->key;
  *node = std::move(value);
}

}  // namespace tokamak
