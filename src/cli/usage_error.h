// Reports a command line that the parser refused, in the form of the config's errors: the mistake and the alternatives.
#pragma once

#include <CLI/CLI.hpp>

namespace tokamak::cli {

// Throws Error(kConfig) for a failed parse. It begins with the subcommand; its hint is the nearest name, or the
// option's meaning.
[[noreturn]] void refuse_usage(const CLI::App& root, const CLI::ParseError& error);

}  // namespace tokamak::cli
