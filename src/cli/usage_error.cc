#include "cli/usage_error.h"

#include <limits>
#include <optional>
#include <regex>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak::cli {

namespace {

// The chosen subcommand, and the words that choose it.
struct Chosen {
  const CLI::App* command;
  std::string path;  // "tokamak data tokenize"
};

Chosen chosen_of(const CLI::App& root) {
  Chosen chosen{&root, root.get_name()};
  while (!chosen.command->get_subcommands().empty()) {
    chosen.command = chosen.command->get_subcommands().front();
    chosen.path += " " + chosen.command->get_name();
  }
  return chosen;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* one : command.get_options()) {
    for (const std::string& name : one->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> positional_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* one : command.get_options()) {
    if (one->get_positional()) names.push_back(one->get_name(true));
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "it has " + join(names, ", ") : str("did you mean '", near, "'?");
}

std::string help_of(const Chosen& chosen) { return str("`", chosen.path, " --help` has the rest"); }

// Reports a word that the parser did not accept.
[[noreturn]] void refuse_word(const Chosen& chosen, const std::string& text) {
  const std::string word = split(text, '=').front();
  if (starts_with(word, "-")) {
    std::string hint = nearest_of(word, option_names(*chosen.command));
    // The form of overrides in other programs.
    if (chosen.command->get_option_no_throw("overrides") != nullptr && word.find('.') != std::string::npos) {
      const std::string key = text.substr(text.find_first_not_of('-'));
      hint = str("write ", key, key.find('=') == std::string::npos ? "=VALUE" : "", ", without dashes");
    }
    fail(Kind::kConfig, str(chosen.path, " has no option '", word, "'"), hint);
  }
  if (const auto names = subcommand_names(*chosen.command); !names.empty()) {
    fail(Kind::kConfig, str(chosen.path, " has no subcommand '", word, "'"), nearest_of(word, names));
  }
  const std::vector<std::string> taken = positional_names(*chosen.command);
  fail(Kind::kConfig, str(chosen.path, " has no use for '", text, "'"),
       str(taken.empty() ? "it takes options only" : "without an option's name it takes " + join(taken, " and "), "; ",
           help_of(chosen)));
}

// The option that the parser's message names: the one with the longest name among its words.
const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* one : command.get_options()) {
    const std::string name = one->get_name();
    const size_t at = message.find(name);
    if (at == std::string::npos || name.empty()) continue;
    if (found == nullptr || name.size() > found->get_name().size()) found = one;
  }
  return found;
}

struct RefusedValue {
  std::string value, rule;
};

// Rewrites a message of the parser's checks: "--to: onnx not in {hf,gguf}", "--rows: Value 0 not in range 1.000000 to
// 9.000000".
std::optional<RefusedValue> refused_value(const std::string& message) {
  static const std::regex set(": (.*) not in \\{(.*)\\}"), range(": Value (.*) not in range ([-.0-9]+) to ([-.0-9]+)");
  std::smatch found;
  if (std::regex_search(message, found, set)) {
    return RefusedValue{found[1], "one of " + join(split(found[2].str(), ','), ", ")};
  }
  if (!std::regex_search(message, found, range)) return std::nullopt;
  const double least = std::stod(found[2]), most = std::stod(found[3]);
  const bool positive = least == 0 && most == std::numeric_limits<double>::max();  // CLI::PositiveNumber
  return RefusedValue{found[1], positive ? "a positive number" : str("a number from ", least, " to ", most)};
}

}  // namespace

void refuse_usage(const CLI::App& root, const CLI::ParseError& error) {
  const Chosen chosen = chosen_of(root);
  if (const auto left = root.remaining(true); !left.empty()) refuse_word(chosen, left.front());
  const std::string message = error.what();
  const auto* missing = dynamic_cast<const CLI::RequiredError*>(&error);
  const CLI::Option* option = option_in(*chosen.command, message);
  if (missing != nullptr && option == nullptr) {
    fail(Kind::kConfig, chosen.path + ": a subcommand is required",
         "it has " + join(subcommand_names(*chosen.command), ", "));
  }
  if (option != nullptr) {
    if (const auto refused = refused_value(message)) {
      fail(Kind::kConfig, str(chosen.path, ": ", option->get_name(), " has no value '", refused->value, "'"),
           str("it is ", refused->rule, ": ", option->get_description()));
    }
  }
  fail(Kind::kConfig, str(chosen.path, ": ", message),
       option == nullptr ? help_of(chosen) : str(option->get_name(), ": ", option->get_description()));
}

}  // namespace tokamak::cli
