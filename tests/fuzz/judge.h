// For all targets: the verdict on a reader, and files for readers that take a path.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/targets.h"

namespace tokamak::fuzz {

template <class Read>
Verdict judge(Kind kind, const Read& read) {
  try {
    read();
    return Verdict::kAccepted;
  } catch (const Error& error) {
    require(error.kind() == kind);
    const std::string_view what = error.what();
    require(what.find("the file") != std::string_view::npos ||
            what.find("errors in the config") != std::string_view::npos);
    return Verdict::kRefused;
  }
}

// A directory of this process, in memory. Its path ends in "the file", so errors that name a file in it pass judge().
std::string directory();

// Writes directory()/name and returns its path.
std::string put(const char* name, std::string_view bytes);

}  // namespace tokamak::fuzz
