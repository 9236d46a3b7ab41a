#include "config/print.h"

#include "config/options_tree.h"
#include "config/yaml.h"

namespace tokamak {

namespace {

void remove_comments(ConfigNode& node) {
  node.comment.clear();
  for (ConfigNode& child : node.children) remove_comments(child);
}

// Omits the help of an item's fields, which would repeat for each item of a list.
void remove_comments_in_lists(ConfigNode& node) {
  for (ConfigNode& child : node.children) {
    if (node.type == ConfigNode::Type::kList) {
      remove_comments(child);
    } else {
      remove_comments_in_lists(child);
    }
  }
}

}  // namespace

std::string print_config(const RunConfig& config, Help help) {
  ConfigNode tree = tree_of(config);
  if (help == Help::kNone) {
    remove_comments(tree);
  } else {
    remove_comments_in_lists(tree);
  }
  return emit_yaml(tree);
}

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
