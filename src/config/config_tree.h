// A config as an untyped tree: the YAML's values and their locations. Overrides and references work on this tree;
// binding adds types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tokamak {

struct ConfigNode {
  enum class Type { kNull, kScalar, kList, kMap };
  Type type = Type::kNull;
  std::string key;                   // in the parent map; empty in a list
  std::string text;                  // of a scalar, as written
  std::vector<ConfigNode> children;  // of a map, with keys, or of a list; in order
  std::string place;                 // "FILE:LINE" or "command line: ..."; empty: a default
  // For the printer only:
  bool is_text = false;  // a string: quoted if YAML could parse it as another type
  std::string comment;

  ConfigNode* child(std::string_view name);  // of a map; nullptr if missing
  // For error messages: the text, or the kind of node.
  std::string shown() const;
};

// A dotted path: "data.sources[0].weight" is {data, sources, 0, weight}.
struct PathStep {
  std::string key;
  int64_t index = -1;  // index into a list; then there is no key
};
std::vector<PathStep> parse_path(std::string_view path);  // empty: malformed
std::string printed_path(const std::vector<PathStep>& path);
std::string join_path(const std::string& parent, const std::string& key);  // without a dot if parent is empty

ConfigNode* find_node(ConfigNode& root, const std::vector<PathStep>& path);  // nullptr: missing

// Merges `above` over `below`: maps are merged, everything else is replaced. An empty section ("checkpoint:") changes
// nothing.
void overlay(ConfigNode& below, const ConfigNode& above);

// The place of the node at `path`, or of the innermost enclosing node that has one; else `otherwise`.
std::string nearest_place(ConfigNode& root, const std::string& path, const std::string& otherwise);

// One problem of a config; all problems are raised as one Error(kConfig), which names the first 20.
struct Problem {
  std::string place;
  std::string what;
  std::string hint;
};
[[noreturn]] void fail_with(const std::vector<Problem>& problems);

// Sets the value at the path of an override, KEY=VALUE; the value is YAML and replaces the old one. Missing keys are
// created, so that binding reports them with the place "command line: KEY=VALUE"; items of a list must exist.
void apply_override(ConfigNode& root, const std::string& override_text, std::vector<Problem>& problems);

// Replaces every ${section.key} in `root`, which includes the defaults, by that key's value. A value that consists of
// one reference may name a list or a section. Adds unknown keys, cycles and unclosed braces to `problems`. All copies
// share a budget, as ten lines can refer to one another a billion times; it adds one problem.
void resolve_references(ConfigNode& root, std::vector<Problem>& problems);

// A config as keys and values: to compare two, and to show one.
struct ConfigLine {
  std::string key;    // "optimizer.lr", "data.sources[0].path"
  std::string value;  // as it is printed
};

// In the order of the tree. A list of plain values is one line, "[a, b]"; a list of mappings has a line per key.
std::vector<ConfigLine> config_lines(const ConfigNode& node);

}  // namespace tokamak
