// What the watchdog leaves in a run's directory: hang-<UTC time>.txt, which says who hung, and suspects.txt, a host a
// line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct FoundHang {
  int64_t time = 0;  // milliseconds since 1970: of its name, else when it was written
  std::string name;
  std::string headline;  // its first line, but for one that only says when: the reason
};

// By time. Error(kData) where such a file is no regular one.
std::vector<FoundHang> find_hang_files(const std::string& directory);

std::vector<std::string> read_suspects(const std::string& directory);  // each host once, sorted

}  // namespace tokamak
