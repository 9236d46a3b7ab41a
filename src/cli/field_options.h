// Options of the command line whose values people write with units ("250B", "5%"), singly or from an options struct.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "config/units.h"

namespace tokamak::cli {

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
