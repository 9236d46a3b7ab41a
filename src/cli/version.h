// What `tokamak --version` prints: version, git commit, compiler, backends.
#pragma once

#include <string>

namespace tokamak::cli {

std::string version_text();

}  // namespace tokamak::cli
