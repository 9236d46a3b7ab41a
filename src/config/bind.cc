#include "config/bind.h"

#include "base/printable.h"

namespace tokamak {

namespace {

// Several problems are a line each, hint included: that of a section with many keys would be longer than a terminal.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  if (names.size() <= kMost) return join(names, ", ");
  return str(join({names.begin(), names.begin() + kMost}, ", "), ", ... (docs/config.md has all ", names.size(), ")");
}

}  // namespace

bool Binder::is_map(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kMap) return true;
  report(node, path, "must be a mapping of keys to values");
  return false;
}

bool Binder::is_list(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kList) return true;
  report(node, path, "must be a list", "for example [a, b], or lines that begin with '- '");
  return false;
}

bool Binder::is_scalar(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kScalar) return true;
  if (node.type == ConfigNode::Type::kNull) {
    problems_.push_back(
        {node.place, str("key '", printable(path), "' has no value"), "give it one, or remove the key"});
  } else {
    report(node, path, "must be a single value");
  }
  return false;
}

void Binder::take_unknown(ConfigNode& node, const std::string& path, const ConfigNode& defaults) {
  if (node.type != ConfigNode::Type::kMap || defaults.type != ConfigNode::Type::kMap) return;
  std::vector<std::string> known;
  for (const ConfigNode& child : defaults.children) known.push_back(child.key);
  std::erase_if(node.children, [&](ConfigNode& child) {
    const auto found = std::find(known.begin(), known.end(), child.key);
    if (found == known.end()) {
      report_unknown(child, path, known);
      return true;
    }
    take_unknown(child, join_path(path, child.key), defaults.children[static_cast<size_t>(found - known.begin())]);
    return false;
  });
}

void Binder::report(const ConfigNode& node, const std::string& path, const std::string& rule, const std::string& hint) {
  problems_.push_back({node.place, str("key '", printable(path), "' (value ", node.shown(), ") ", rule), hint});
}

void Binder::report_choice(const ConfigNode& node, const std::string& path, const std::vector<std::string>& names) {
  const std::string near = nearest(node.text, names);
  report(node, path, "must be one of " + join(names, ", "), near.empty() ? "" : str("did you mean '", near, "'?"));
}

void Binder::report_unknown(const ConfigNode& node, const std::string& section, const std::vector<std::string>& known) {
  std::string hint;
  if (const std::string near = nearest(node.key, known); !near.empty()) {
    hint = str("did you mean '", near, "'?");
  } else {
    const auto elsewhere = std::find_if(all_keys_.begin(), all_keys_.end(), [&](const std::string& key) {
      return key.size() > node.key.size() && key.substr(key.size() - node.key.size() - 1) == "." + node.key;
    });
    hint = elsewhere != all_keys_.end() ? str("did you mean '", *elsewhere, "'?")
           : section.empty()            ? str("the sections are ", listed(known))
                                        : str("the keys of '", section, "' are ", listed(known));
  }
  problems_.push_back({node.place,
                       str("key '", printable(join_path(section, node.key)), "' (value ", node.shown(), ") is unknown"),
                       hint});
}

}  // namespace tokamak
