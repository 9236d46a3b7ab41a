// The output of `tokamak --version`: version, git commit, compiler, backends.
#pragma once

#include <string>

namespace tokamak::cli {

std::string version_text();
std::string program_name();  // "tokamak 0.1.0, commit 3ffeb6390c61"

}  // namespace tokamak::cli
