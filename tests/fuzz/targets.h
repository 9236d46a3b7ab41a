// Readers of foreign files, as functions of bytes. Each accepts its input, or refuses it with an Error of its kind that
// names the file. Anything else is a fault and ends the process: another exception, a promise broken after acceptance,
// stray memory. targets() is the one table for mutation_test.cc, libFuzzer's program and the corpus.
#pragma once

#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace tokamak::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

enum class Verdict { kAccepted, kRefused };

struct Target {
  const char* name;
  Verdict (*read)(std::string_view bytes);
  std::string (*sample)();      // a valid input, rich in what can be damaged
  int cases = 1000;             // of mutation_test.cc
  double accepts = 0.3;         // a share of them at most; a reader that takes what it can takes more
  bool reads_any_text = false;  // brackets are text, too
};

std::span<const Target> targets();
std::span<const Target> data_targets();            // a part of targets(): shards and texts
std::span<const Target> scan_targets();            // a part of targets(): text into pretokens
std::span<const Target> web_targets();             // a part of targets(): pages and documents
const Target* find_target(std::string_view name);  // nullptr: there is none

}  // namespace tokamak::fuzz
