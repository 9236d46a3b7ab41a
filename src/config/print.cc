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

}  // namespace tokamak
