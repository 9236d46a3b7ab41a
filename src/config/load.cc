#include "config/load.h"

#include "base/file.h"
#include "config/read.h"
#include "config/validate.h"

namespace tokamak {

RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_text(path, Kind::kConfig), path, overrides);
}

RunConfig parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  ReadConfig read = read_config(text, name, overrides);
  std::vector<Problem> problems;
  for (const FieldError& error : find_problems(read.config)) {
    problems.push_back({nearest_place(read.tree, error.key, name), error.what, error.hint});
  }
  if (!problems.empty()) fail_with(problems);
  return read.config;
}

}  // namespace tokamak
