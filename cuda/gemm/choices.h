// The file in which chosen algorithms are kept from run to run: a line "PROBLEM HEX" for each, after a first line that
// names the format. It knows nothing of cuBLAS: an algorithm is a number of bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

class GemmChoices {
 public:
  // Of algorithms of `bytes` bytes. A file that is missing is an empty one; one of another kind is left alone: nothing
  // is taken from it or written to it, and a warning says so. Without a path nothing is kept.
  GemmChoices(std::string path, size_t bytes);

  std::optional<std::string> find(const std::string& problem) const;  // the algorithm's bytes
  // Remembers, and writes the file; one that cannot be written costs a warning.
  void keep(const std::string& problem, std::string_view algorithm);

 private:
  bool load();

  std::string path_;
  size_t bytes_;
  bool ours_ = true;
  std::map<std::string, std::string> known_;
};

}  // namespace tokamak
