// What the parser found no place for, in the words of the config's errors: with the nearest name that there is.
#pragma once

#include <CLI/CLI.hpp>

namespace tokamak::cli {

// After a parse that failed. Error(kConfig) where the command line has a subcommand or an option that does not exist.
void refuse_unknown_word(const CLI::App& root);

}  // namespace tokamak::cli
