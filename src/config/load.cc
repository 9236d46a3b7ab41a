#include "config/load.h"

#include "base/file.h"
#include "config/read.h"
#include "config/validate.h"
#include "train/stages.h"

namespace tokamak {

void fail_at(const std::vector<FieldError>& found, ConfigNode& tree, const std::string& name) {
  std::vector<Problem> problems;
  for (const FieldError& error : found)
    problems.push_back({nearest_place(tree, error.key, name), error.what, error.hint});
  if (!problems.empty()) fail_with(problems);
}

namespace {

RunConfig validated(ReadConfig read, const std::string& name) {
  fail_at(find_problems(read.config), read.tree, name);
  return std::move(read.config);
}

}  // namespace

void fail_with_places(const std::vector<FieldError>& found, const std::string& path,
                      const std::vector<std::string>& overrides) {
  if (found.empty()) return;
  ReadConfig read = read_config(read_text(path, Kind::kConfig), path, overrides);
  fail_at(found, read.tree, path);
}

RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_text(path, Kind::kConfig), path, overrides);
}

RunConfig parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  return validated(read_config(text, name, overrides), name);
}

RunConfig parse_saved_config(const std::string& text, const std::string& manifest_path) {
  try {
    return validated(read_config(text, manifest_path, {}, RemovedKeys::kIgnore), manifest_path);
  } catch (const Error& error) {
    fail(Kind::kCheckpoint, error.what(), error.hint());
  }
}

RunConfig config_of_checkpoint(const CheckpointReader& reader) {
  const TrainingPoint& point = reader.manifest().point;
  return config_at_step(parse_saved_config(point.config, reader.directory() + "/" + kManifestName), point.state.step);
}

}  // namespace tokamak
