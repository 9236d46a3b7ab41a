// ConfigNode -> typed fields. Every node must match a field, and every value the field's type. Anything else is a
// problem, and the field keeps its default.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "config/options_tree.h"

namespace tokamak {

// Keys of earlier versions are an error in a user's config, and ignored in a checkpoint's.
enum class RemovedKeys { kRefuse, kIgnore };

inline Parsed<bool> parse_as(std::string_view text, bool) { return parse_bool(text); }
inline Parsed<int64_t> parse_as(std::string_view text, int64_t) { return parse_count(text); }
inline Parsed<double> parse_as(std::string_view text, double) { return parse_number(text); }
inline Parsed<AutoInt> parse_as(std::string_view text, AutoInt) { return parse_auto_int(text); }
inline Parsed<AutoNumber> parse_as(std::string_view text, AutoNumber) { return parse_auto_number(text); }
inline Parsed<AutoLimit> parse_as(std::string_view text, AutoLimit) { return parse_auto_limit(text); }
inline Parsed<Duration> parse_as(std::string_view text, Duration) { return parse_duration(text); }
inline Parsed<TrainingLength> parse_as(std::string_view text, TrainingLength) { return parse_training_length(text); }

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
    } else if constexpr (kIsVariant<T>) {
      bind_kind(node, path, value);
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

  template <class... Kinds>
  void bind_kind(ConfigNode& node, const std::string& path, std::variant<Kinds...>& value) {
    const std::string name = kind_named_by(node);
    if (name.empty()) return report(node, path, "must be a kind, or one kind with its options", "for example - exact");
    const auto take = [&]<class Kind>(Kind kind) {
      if (name != Kind::kName) return false;
      if (node.type == ConfigNode::Type::kMap && node.children.front().type != ConfigNode::Type::kNull)
        bind(node.children.front(), join_path(path, name), kind);
      value = std::move(kind);
      return true;
    };
    if (!(take(Kinds{}) || ...)) report_choice(node, path, name, {Kinds::kName...});
  }

  template <class List>
  void bind_items(ConfigNode& node, const std::string& path, List& values) {
    for (size_t i = 0; i < values.size(); ++i) bind(node.children[i], str(path, "[", i, "]"), values[i]);
  }

  void bind_scalar(const ConfigNode& node, const std::string&, std::string& value) { value = node.text; }
  template <class T>
  void bind_scalar(const ConfigNode& node, const std::string& path, T& value) {
    const Parsed<T> parsed = parse_as(node.text, value);
    if (!parsed.value) return report(node, path, parsed.rule, parsed.hint);
    value = *parsed.value;
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void bind_scalar(const ConfigNode& node, const std::string& path, Enum& value) {
    const std::vector<std::string>& names = enum_names(value);
    const auto found = std::find(names.begin(), names.end(), node.text);
    if constexpr (requires { enum_of_bool(true, value); }) {
      if (node.text == "true" || node.text == "false") return void(value = enum_of_bool(node.text == "true", value));
    }
    if (found == names.end()) return report_choice(node, path, node.text, names);
    value = static_cast<Enum>(found - names.begin());
  }

  bool is_map(const ConfigNode& node, const std::string& path);
  bool is_list(const ConfigNode& node, const std::string& path);
  bool is_scalar(const ConfigNode& node, const std::string& path);
  void report(const ConfigNode& node, const std::string& path, const std::string& rule, const std::string& hint = "");
  void report_choice(const ConfigNode& node, const std::string& path, const std::string& given,
                     const std::vector<std::string>& names);
  static std::string kind_named_by(const ConfigNode& node);  // "": by none, or by several
  void report_unknown(const ConfigNode& node, const std::string& section, const std::vector<std::string>& known);

  std::vector<Problem>& problems_;
  std::vector<std::string> all_keys_;
  RemovedKeys removed_keys_;
};

}  // namespace tokamak
