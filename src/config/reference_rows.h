// The rows of a reference page: the fields of an options struct with type, default and meaning, as a table of Markdown.
#pragma once

#include <string>
#include <vector>

#include "config/options_tree.h"

namespace tokamak::reference {

inline constexpr const char* kHead = "| key | type | default | meaning |\n|---|---|---|---|\n";

inline std::string type_name(const std::string&) { return "text"; }
inline std::string type_name(bool) { return "true, false"; }
inline std::string type_name(int64_t) { return "count"; }
inline std::string type_name(double) { return "number"; }
inline std::string type_name(AutoInt) { return "auto, count"; }
inline std::string type_name(AutoNumber) { return "auto, number"; }
inline std::string type_name(AutoLimit) { return "auto, none, count"; }
inline std::string type_name(Duration) { return "time"; }
inline std::string type_name(const TrainingLength&) { return "length"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string type_name(Enum value) { return join(enum_names(value), ", "); }
template <class T, size_t N>
std::string type_name(const std::array<T, N>&) {
  return str("list of ", N, " ", type_name(T{}), "s");
}
template <class T>
std::string type_name(const std::vector<T>&) {
  if constexpr (OptionsStruct<T> || kIsVariant<T>)
    return "list of mappings";
  else
    return str("list of ", type_name(T{}), "s");
}

inline std::string code(const std::string& text) { return text.empty() ? "" : str("`", text, "`"); }

inline std::string cell(const std::string& text) {  // escapes bars, which would end the cell
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

template <class T>
std::string default_of(const T& value, const std::string& help) {
  if (is_required(help)) return "required";
  const ConfigNode node = tree_of(value);
  if (node.type == ConfigNode::Type::kScalar) return code(node.text);
  std::vector<std::string> items;
  for (const ConfigNode& item : node.children) items.push_back(item.text);
  return code(str("[", join(items, ", "), "]"));
}

// A key of a stage that repeats one of the run has no rows of its own for what is below it.
inline bool repeats_another_key(std::string_view help) { return help.starts_with("as "); }

// Adds the rows of one options struct. `prefix` is its path, such as "sources[]." for the items of a list.
template <class T>
std::string rows(T options, const std::string& prefix) {
  std::string out;
  const auto each = [&](const char* name, auto& value, const char* help) {
    using Field = std::remove_reference_t<decltype(value)>;
    if (OptionsStruct<Field> && repeats_another_key(help)) {
      out += str("| `", prefix, name, "` | mapping | | ", cell(help), " |\n");
    } else if constexpr (OptionsStruct<Field>) {
      out += rows(value, str(prefix, name, "."));
    } else {
      out +=
          str("| `", prefix, name, "` | ", type_name(value), " | ", default_of(value, help), " | ", cell(help), " |\n");
      if constexpr (kIsVector<Field>) {
        if constexpr (OptionsStruct<typename Field::value_type>) {
          if (repeats_another_key(help)) return;
          out += rows(typename Field::value_type{}, str(prefix, name, "[]."));
        }
      }
    }
  };
  options.fields(each);
  return out;
}

}  // namespace tokamak::reference
