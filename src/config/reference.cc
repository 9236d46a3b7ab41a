// Generates docs/config.md from the options' field lists.
#include "config/options_tree.h"
#include "config/print.h"

namespace tokamak {

namespace {

constexpr const char* kIntroduction = R"(# Config reference

A run is one YAML file. This page is generated from the program's own list of options
(`tokamak train --config-reference > docs/config.md`); a test keeps it so.

- An unknown key, a key given twice and a value of the wrong type are errors that name file and line.
- `KEY=VALUE` after the file on the command line replaces a value: `optimizer.lr=3e-4`, `data.sources[0].weight=2`,
  `'data.sources=[{path: my/data}]'`. The value is YAML.
- `${section.key}` stands for another key's value, default or not; it is resolved after the overrides.
- *count*: `4096`, `1e6`, `64Ki`, `1.5M`, `250B`. K, M, B, T are powers of 1000; Ki, Mi, Gi, Ti of 1024.
- *number*: `0.1`, `3e-4`, `5%`.
- *length*: `2000` or `2000 steps`, `1B tokens`, `5%` of the run, `90min`, `2h`, `30s`; each key names its units.
- *time*: `90s`, `30min`, `3h50min`, `2d`, or `none`.
)";

std::string type_name(const std::string&) { return "text"; }
std::string type_name(bool) { return "true, false"; }
std::string type_name(int64_t) { return "count"; }
std::string type_name(double) { return "number"; }
std::string type_name(AutoInt) { return "auto, count"; }
std::string type_name(AutoNumber) { return "auto, number"; }
std::string type_name(AutoLimit) { return "auto, none, count"; }
std::string type_name(Duration) { return "time"; }
std::string type_name(const TrainingLength&) { return "length"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string type_name(Enum value) { return join(enum_names(value), ", "); }
template <class T, size_t N>
std::string type_name(const std::array<T, N>&) {
  return str("list of ", N, " ", type_name(T{}), "s");
}
template <class T>
std::string type_name(const std::vector<T>&) {
  if constexpr (OptionsStruct<T>)
    return "list of mappings";
  else
    return str("list of ", type_name(T{}), "s");
}

std::string code(const std::string& text) { return text.empty() ? "" : str("`", text, "`"); }

std::string cell(const std::string& text) {  // escapes bars, which would end the cell
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
bool repeats_another_key(std::string_view help) { return help.starts_with("as "); }

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

}  // namespace

std::string config_reference() {
  std::string out = kIntroduction;
  RunConfig defaults;
  const auto section = [&](const char* name, auto& options, const std::string& help) {
    out += str("\n## ", name, "\n\n", help, ".\n\n| key | type | default | meaning |\n|---|---|---|---|\n");
    using Section = std::remove_reference_t<decltype(options)>;
    if constexpr (kIsVector<Section>) {
      out += rows(typename Section::value_type{}, "");
    } else {
      out += rows(options, "");
    }
  };
  defaults.fields(section);
  return out;
}

}  // namespace tokamak
