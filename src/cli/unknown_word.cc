#include "cli/unknown_word.h"

#include "base/error.h"
#include "base/strings.h"

namespace tokamak::cli {

namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* one : command.get_options()) {
    for (const std::string& name : one->get_lnames()) names.push_back("--" + name);
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

}  // namespace

void refuse_unknown_word(const CLI::App& root) {
  const std::vector<std::string> left = root.remaining(true);
  if (left.empty()) return;
  const CLI::App* command = &root;
  std::string path = root.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  const std::string word = split(left.front(), '=').front();
  const bool is_option = starts_with(word, "-");
  const std::vector<std::string> names = is_option ? option_names(*command) : subcommand_names(*command);
  if (names.empty()) return;
  const std::string near = nearest(word, names);
  fail(Kind::kConfig, str(path, " has no ", is_option ? "option '" : "subcommand '", word, "'"),
       near.empty() ? "it has " + join(names, ", ") : str("did you mean '", near, "'?"));
}

}  // namespace tokamak::cli
