// Options whose values are parsed by this program: names of an enum (enum_names, base/fields.h), numbers with units,
// and the fields of an options struct.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "config/units.h"

namespace tokamak::cli {

// The value called `name`, which must be one of them (as CLI::IsMember(enum_names(Enum{})) ensures).
template <class Enum>
Enum enum_from_name(const std::string& name) {
  const std::vector<std::string>& names = enum_names(Enum{});
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

// --weights, of the commands that read a checkpoint's weights (CheckpointReader::use_average).
inline void add_weights(CLI::App* parser, std::string& average) {
  parser->add_option("--weights", average,
                     "an average of the checkpoint's run, by its name; default: the last weights");
}

// An option whose value has a unit ("250B", "5%").
template <class T>
CLI::Option* add_quantity(CLI::App* parser, const std::string& flag, T& value, Parsed<T> (*parse)(std::string_view),
                          const std::string& help) {
  const auto set = [&value, parse, flag](const std::string& text) {
    const Parsed<T> parsed = parse(text);
    if (!parsed.value) throw CLI::ValidationError(str(flag, " ", text), parsed.rule);
    value = *parsed.value;
  };
  return parser->add_option_function<std::string>(flag, set, help);
}

// A visitor that makes an option of each field of a struct: vocab_size is --vocab-size.
class FieldOptions {
 public:
  explicit FieldOptions(CLI::App* parser) : parser_(parser) {}

  void operator()(const char* name, int64_t& value, const char* help) {
    add_quantity(parser_, flag(name), value, parse_count, help)->type_name("N")->default_str(print_count(value));
  }
  void operator()(const char* name, double& value, const char* help) {
    add_quantity(parser_, flag(name), value, parse_number, help)->type_name("X")->default_str(print_number(value));
  }
  void operator()(const char* name, bool& value, const char* help) {
    add_quantity(parser_, flag(name), value, parse_bool, help)->type_name("true|false")->default_str(print_bool(value));
  }
  void operator()(const char* name, std::string& value, const char* help) {
    parser_->add_option(flag(name), value, help)->capture_default_str();
  }
  void operator()(const char* name, std::vector<std::string>& value, const char* help) {
    parser_->add_option(flag(name), value, help);
  }

 private:
  static std::string flag(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "--" + name;
  }

  CLI::App* parser_;
};

}  // namespace tokamak::cli
