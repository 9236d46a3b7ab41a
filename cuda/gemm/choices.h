// The cache file of chosen algorithms: a first line that names the format, then a line "PROBLEM HEX" per algorithm. It
// does not depend on cuBLAS: an algorithm is a sequence of bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

class GemmChoices {
 public:
  // Algorithms have `bytes` bytes. A missing file counts as empty. A file of another format is neither read nor
  // written, and a warning says so. An empty path disables the cache.
  GemmChoices(std::string path, size_t bytes);

  std::optional<std::string> find(const std::string& problem) const;  // the algorithm's bytes
  // Stores the algorithm and writes the file; logs a warning if that fails.
  void keep(const std::string& problem, std::string_view algorithm);

 private:
  bool load();

  std::string path_;
  size_t bytes_;
  bool ours_ = true;
  std::map<std::string, std::string> known_;
};

}  // namespace tokamak
