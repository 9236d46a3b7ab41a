// The watchdog's files in a run's directory: hang-<UTC time>.txt names the ranks that hung, suspects.txt has a host a
// line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct FoundHang {
  int64_t time = 0;  // milliseconds since 1970: by its name, else by its mtime
  std::string name;
  std::string headline;  // the first line after the time: the reason
};

// By time. Error(kData) where one is not a regular file.
std::vector<FoundHang> find_hang_files(const std::string& directory);

std::vector<std::string> read_suspects(const std::string& directory);  // each host once, sorted

}  // namespace tokamak
