// ConfigNode -> typed fields. Every node must match a field and every value its type. Anything else is a problem, and
// the field keeps its default.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "config/config_tree.h"
#include "config/field_kinds.h"
#include "config/units.h"

namespace tokamak {

// Keys of earlier versions are an error in a user's config, and ignored in a checkpoint's.
enum class RemovedKeys { kRefuse, kIgnore };

class Binder {
 public:
  // `all_keys`: the dotted path of every option, for the error about a key in the wrong section.
  Binder(std::vector<Problem>& problems, std::vector<std::string> all_keys, RemovedKeys removed_keys)
      : problems_(problems), all_keys_(std::move(all_keys)), removed_keys_(removed_keys) {}

  // Reports the sections and keys that `defaults` does not have, and removes them from the tree at `path`, so that no
  // reference copies them.
  void take_unknown(ConfigNode& node, const std::string& path, const ConfigNode& defaults);

  template <class T>
  void bind(ConfigNode& node, const std::string& path, T& value) {
    if constexpr (OptionsStruct<T>) {
      bind_struct(node, path, value);
    } else if constexpr (kIsVector<T>) {
      if (!is_list(node, path)) return;
      value.assign(node.children.size(), {});
      bind_items(node, path, value);
    } else if constexpr (kIsArray<T>) {
      if (!is_list(node, path)) return;
      if (node.children.size() != value.size()) {
        report(node, path, str("must be a list of exactly ", value.size()));
      } else {
        bind_items(node, path, value);
      }
    } else if (is_scalar(node, path)) {
      bind_scalar(node, path, value);
    }
  }

 private:
  template <class T>
  void bind_struct(ConfigNode& node, const std::string& path, T& options) {
    if (!is_map(node, path)) return;
    std::vector<std::string> known;
    const auto each = [&](const char* name, auto& value, const char* /*help*/) {
      known.emplace_back(name);
      if (ConfigNode* child = node.child(name)) bind(*child, join_path(path, name), value);
    };
    options.fields(each);
    for (const ConfigNode& child : node.children) {
      if (std::find(known.begin(), known.end(), child.key) == known.end()) report_unknown(child, path, known);
    }
  }

  template <class List>
  void bind_items(ConfigNode& node, const std::string& path, List& values) {
    for (size_t i = 0; i < values.size(); ++i) bind(node.children[i], str(path, "[", i, "]"), values[i]);
  }

  void bind_scalar(const ConfigNode& node, const std::string&, std::string& value) { value = node.text; }
  void bind_scalar(const ConfigNode& node, const std::string& path, bool& value) {
    keep(node, path, parse_bool(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, int64_t& value) {
    keep(node, path, parse_count(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, double& value) {
    keep(node, path, parse_number(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, AutoInt& value) {
    keep(node, path, parse_auto_int(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, AutoLimit& value) {
    keep(node, path, parse_auto_limit(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, Duration& value) {
    keep(node, path, parse_duration(node.text), value);
  }
  void bind_scalar(const ConfigNode& node, const std::string& path, TrainingLength& value) {
    keep(node, path, parse_training_length(node.text), value);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void bind_scalar(const ConfigNode& node, const std::string& path, Enum& value) {
    const std::vector<std::string>& names = enum_names(value);
    const auto found = std::find(names.begin(), names.end(), node.text);
    if (found == names.end()) return report_choice(node, path, names);
    value = static_cast<Enum>(found - names.begin());
  }

  template <class T>
  void keep(const ConfigNode& node, const std::string& path, const Parsed<T>& parsed, T& value) {
    if (!parsed.value) return report(node, path, parsed.rule, parsed.hint);
    value = *parsed.value;
  }

  bool is_map(const ConfigNode& node, const std::string& path);
  bool is_list(const ConfigNode& node, const std::string& path);
  bool is_scalar(const ConfigNode& node, const std::string& path);
  void report(const ConfigNode& node, const std::string& path, const std::string& rule, const std::string& hint = "");
  void report_choice(const ConfigNode& node, const std::string& path, const std::vector<std::string>& names);
  void report_unknown(const ConfigNode& node, const std::string& section, const std::vector<std::string>& known);

  std::vector<Problem>& problems_;
  std::vector<std::string> all_keys_;
  RemovedKeys removed_keys_;
};

}  // namespace tokamak
