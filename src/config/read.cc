#include "config/read.h"

#include "config/options_tree.h"
#include "config/yaml.h"
#include "train/stages.h"

namespace tokamak {

namespace {

bool is_written(const ConfigNode& node) {
  return !node.place.empty() || std::any_of(node.children.begin(), node.children.end(),
                                            [](const ConfigNode& child) { return is_written(child); });
}

// Sections that every config must have.
void require_sections(ConfigNode& root, const std::string& name, std::vector<Problem>& problems) {
  for (const char* section : {"model", "data", "training"}) {
    const ConfigNode* node = root.child(section);
    if (node == nullptr || !is_written(*node)) {
      problems.push_back(
          {name, str("section '", section, "' is missing"), "docs/config.md lists the keys of each section"});
    }
  }
}

std::vector<std::string> all_keys(const ConfigNode& defaults) {
  std::vector<std::string> keys;
  for (const ConfigNode& section : defaults.children) {
    keys.push_back(section.key);
    for (const ConfigNode& field : section.children) keys.push_back(join_path(section.key, field.key));
  }
  return keys;
}

// A key that a stage leaves out has the run's value, with the place of that.
void complete_stages(ConfigNode& root) {
  ConfigNode* stages = root.child("stages");
  if (stages == nullptr || stages->type != ConfigNode::Type::kList) return;
  for (ConfigNode& stage : stages->children) {
    if (stage.type != ConfigNode::Type::kMap) continue;  // binding reports it
    for (const StageKey& key : kStageKeys) {
      if (stage.child(key.stage) != nullptr) continue;
      const ConfigNode* of_run = find_node(root, parse_path(key.run));
      TOKAMAK_CHECK(of_run != nullptr, key.run);
      stage.children.push_back(*of_run);
      stage.children.back().key = key.stage;
    }
  }
}

}  // namespace

MergedTree::MergedTree(ConfigNode defaults, const std::string& text, const std::string& name,
                       const std::vector<std::string>& overrides, RemovedKeys removed_keys)
    : tree(defaults), binder(problems, all_keys(defaults), removed_keys) {
  overlay(tree, parse_yaml(text, name, problems));
  for (const std::string& override_text : overrides) apply_override(tree, override_text, problems);
  if (!problems.empty()) fail_with(problems);
  binder.take_unknown(tree, "", defaults);
  const size_t unknown = problems.size();
  resolve_references(tree, problems);
  if (problems.size() > unknown) fail_with(problems);
}

ReadConfig read_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       RemovedKeys removed_keys) {
  MergedTree merged(tree_of(RunConfig{}), text, name, overrides, removed_keys);
  ReadConfig read;
  complete_stages(merged.tree);
  merged.binder.bind(merged.tree, "", read.config);
  require_sections(merged.tree, name, merged.problems);
  if (!merged.problems.empty()) fail_with(merged.problems);
  read.tree = std::move(merged.tree);
  return read;
}

}  // namespace tokamak
