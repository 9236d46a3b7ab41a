// A command line that the parser refused, in the words of the config's errors: what is wrong, and what there is
// instead.
#pragma once

#include <CLI/CLI.hpp>

namespace tokamak::cli {

// After a parse that failed with `error`. Error(kConfig) that begins with the subcommand; its hint is the nearest name,
// or the meaning of the option in question.
[[noreturn]] void refuse_usage(const CLI::App& root, const CLI::ParseError& error);

}  // namespace tokamak::cli
