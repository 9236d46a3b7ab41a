// Hand-written, because little of YAML is used: lists of scalars stay on one line, and comments follow their values.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/printable.h"
#include "base/utf8.h"
#include "config/yaml.h"

namespace tokamak {

namespace {

// Whether every YAML reader parses unquoted `text` as a string.
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
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const Utf8Char next = decode_utf8(std::string_view(text).substr(at));
    const std::string whole = text.substr(at, static_cast<size_t>(next.length));
    at += whole.size();
    if (next.code != kInvalidUtf8 && next.code >= 0x80 && next.code < 0x10000 && printable(whole) != whole) {
      out += printable(whole);  // a control, as \uXXXX: YAML's own escape
      continue;
    }
    if (whole.size() > 1) {
      out += whole;
      continue;
    }
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

  // `first`: replaces the indentation of the first line ("- " of a list item).
  void map(const ConfigNode& node, const std::string& indent, std::string first, Help help) {
    for (const ConfigNode& child : node.children) {
      if (indent.empty() && !out_.empty()) out_ += "\n";  // between sections
      out_ += str(first, child.key, ":");
      value(child, indent, help);
      first = indent;
    }
  }

 private:
  void value(const ConfigNode& node, const std::string& indent, Help help) {
    const std::string end = help == Help::kNone || node.comment.empty() ? "\n" : str("  # ", node.comment, "\n");
    if (node.type == ConfigNode::Type::kMap) {
      out_ += end;
      map(node, str(indent, "  "), str(indent, "  "), help);
    } else if (node.type == ConfigNode::Type::kList && has_containers(node)) {
      out_ += end;
      for (const ConfigNode& item : node.children) map(item, str(indent, "    "), str(indent, "  - "), Help::kNone);
    } else if (node.type == ConfigNode::Type::kList) {
      out_ += str(" ", inline_list(node), end);
    } else {
      out_ += str(" ", scalar(node), end);
    }
  }

  std::string& out_;
};

}  // namespace

std::string emit_yaml(const ConfigNode& root, Help help) {
  std::string out;
  Emitter(out).map(root, "", "", help);
  return out;
}

}  // namespace tokamak
