#include "config/print.h"

#include "config/options_tree.h"
#include "config/yaml.h"

namespace tokamak {

std::string print_config(const RunConfig& config, Help help) { return emit_yaml(tree_of(config), help); }

std::vector<ConfigLine> config_values(const RunConfig& config) { return config_lines(tree_of(config)); }

std::string print_value(const RunConfig& config, const std::string& key) {
  ConfigNode tree = tree_of(config);
  const ConfigNode* node = find_node(tree, parse_path(key));
  if (node == nullptr || node->type != ConfigNode::Type::kScalar) {
    fail(Kind::kConfig, str("'", key, "' is not a key with a single value"), "for example run.output_dir");
  }
  return node->text;
}

}  // namespace tokamak
