// yaml-cpp keeps duplicate keys apart and says nothing of them, so they are looked for here. Aliases are expanded; the
// limit on depth is what ends one that contains itself.
#include "config/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace tokamak {

namespace {

constexpr int kDeepest = 16;  // levels of nesting; the options have four

// Turns one document into nodes. `line_places`: a node's place is name:LINE, else `name` alone.
class Converter {
 public:
  Converter(const std::string& name, bool line_places, std::vector<Problem>& problems)
      : name_(name), line_places_(line_places), problems_(problems) {}

  ConfigNode convert(const YAML::Node& yaml, const std::string& path, int depth) {
    ConfigNode node;
    node.place = place(yaml.Mark());
    if (depth > kDeepest) {
      problems_.push_back({node.place, str("key '", path, "' is nested more than ", kDeepest, " levels deep"), ""});
      return node;
    }
    if (yaml.IsScalar()) {
      node.type = ConfigNode::Type::kScalar;
      node.text = yaml.Scalar();
    } else if (yaml.IsSequence()) {
      node.type = ConfigNode::Type::kList;
      for (const YAML::Node& item : yaml) {
        node.children.push_back(convert(item, str(path, "[", node.children.size(), "]"), depth + 1));
      }
    } else if (yaml.IsMap()) {
      node.type = ConfigNode::Type::kMap;
      for (const auto& entry : yaml) add_entry(node, entry.first, entry.second, path, depth);
    }
    return node;
  }

 private:
  std::string place(const YAML::Mark& mark) const { return line_places_ ? str(name_, ":", mark.line + 1) : name_; }

  void add_entry(ConfigNode& map, const YAML::Node& key, const YAML::Node& value, const std::string& path, int depth) {
    const std::string key_place = place(key.Mark());
    if (!key.IsScalar()) {
      problems_.push_back({key_place, str("a key of '", path, "' is not a plain word"), ""});
      return;
    }
    const std::string key_path = join_path(path, key.Scalar());
    if (const ConfigNode* first = map.child(key.Scalar())) {
      problems_.push_back(
          {key_place, str("key '", key_path, "' is given twice, first at ", first->place), "remove one of the two"});
      return;
    }
    ConfigNode child = convert(value, key_path, depth + 1);
    child.key = key.Scalar();
    child.place = key_place;
    map.children.push_back(std::move(child));
  }

  const std::string& name_;
  bool line_places_;
  std::vector<Problem>& problems_;
};

// Whether every YAML reader takes `text` for the text that it is, without quotes.
bool is_plain(const std::string& text) {
  const auto safe = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '.' || c == '-';
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), safe)) return false;
  if (std::isalpha(static_cast<unsigned char>(text[0])) == 0 && text[0] != '/') return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::array<const char*, 9> taken = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return std::find(taken.begin(), taken.end(), lower) == taken.end();
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  out += "\"";
  return out;
}

std::string scalar(const ConfigNode& node) {
  return node.is_text && !is_plain(node.text) ? quoted(node.text) : node.text;
}

bool has_containers(const ConfigNode& list) {
  return std::any_of(list.children.begin(), list.children.end(), [](const ConfigNode& item) {
    return item.type == ConfigNode::Type::kList || item.type == ConfigNode::Type::kMap;
  });
}

std::string inline_list(const ConfigNode& list) {
  std::vector<std::string> items;
  for (const ConfigNode& item : list.children) items.push_back(scalar(item));
  return str("[", join(items, ", "), "]");
}

class Emitter {
 public:
  explicit Emitter(std::string& out) : out_(out) {}

  // `first`: what stands in place of the indentation of the first line ("- " of a list item).
  void map(const ConfigNode& node, const std::string& indent, std::string first) {
    for (const ConfigNode& child : node.children) {
      if (indent.empty() && !out_.empty()) out_ += "\n";  // between sections
      out_ += str(first, child.key, ":");
      value(child, indent);
      first = indent;
    }
  }

 private:
  void value(const ConfigNode& node, const std::string& indent) {
    const std::string end = node.comment.empty() ? "\n" : str("  # ", node.comment, "\n");
    if (node.type == ConfigNode::Type::kMap) {
      out_ += end;
      map(node, str(indent, "  "), str(indent, "  "));
    } else if (node.type == ConfigNode::Type::kList && has_containers(node)) {
      out_ += end;
      for (const ConfigNode& item : node.children) map(item, str(indent, "    "), str(indent, "  - "));
    } else if (node.type == ConfigNode::Type::kList) {
      out_ += str(" ", inline_list(node), end);
    } else {
      out_ += str(" ", scalar(node), end);
    }
  }

  std::string& out_;
};

std::vector<YAML::Node> documents(const std::string& text, const std::string& name, bool line_places) {
  try {
    return YAML::LoadAll(text);
  } catch (const YAML::Exception& e) {
    const std::string place = line_places ? str(name, ":", e.mark.line + 1) : name;
    fail(Kind::kConfig, str(place, ": not valid YAML: ", e.msg),
         "keys of a section are indented alike, with spaces; a space follows each colon");
  }
}

}  // namespace

ConfigNode parse_yaml(const std::string& text, const std::string& name, std::vector<Problem>& problems) {
  const std::vector<YAML::Node> found = documents(text, name, true);
  if (found.size() > 1) {
    problems.push_back({str(name, ":", found[1].Mark().line + 1), "a second YAML document begins here",
                        "a config is one document: remove the line ---"});
  }
  ConfigNode root;
  root.type = ConfigNode::Type::kMap;
  if (!found.empty() && !found[0].IsNull()) root = Converter(name, true, problems).convert(found[0], "", 0);
  if (root.type != ConfigNode::Type::kMap) fail(Kind::kConfig, str(name, ": holds no sections but ", root.shown()));
  root.place = name;
  return root;
}

ConfigNode parse_yaml_value(const std::string& text, const std::string& place, std::vector<Problem>& problems) {
  const std::vector<YAML::Node> found = documents(text, place, false);
  ConfigNode value;
  value.place = place;
  if (!found.empty()) value = Converter(place, false, problems).convert(found[0], "", 0);
  return value;
}

std::string emit_yaml(const ConfigNode& root) {
  std::string out;
  Emitter(out).map(root, "", "");
  return out;
}

}  // namespace tokamak
