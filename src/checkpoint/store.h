// The directory of a run's checkpoints, by name; README.md draws it. Reading it changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/reader.h"

namespace tokamak {

// Infixes between the names of a step and an incarnation.
inline constexpr std::string_view kUnfinished = ".tmp-";
inline constexpr std::string_view kSetAside = ".set-aside-";
// Prefixes.
inline constexpr std::string_view kTrash = ".trash-";
inline constexpr std::string_view kProbe = ".probe-";

std::string step_name(int64_t step);                              // 20 -> "step-00000020"
std::optional<int64_t> parse_step_name(const std::string& name);  // of a committed checkpoint

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string path_of(int64_t step) const { return directory_ + "/" + step_name(step); }

  // All are empty if the directory does not exist. Error(kCheckpoint) if it cannot be listed.
  std::vector<int64_t> steps() const;           // of committed checkpoints, ascending
  std::vector<std::string> unfinished() const;  // names of step-*.tmp-*
  std::vector<std::string> set_aside() const;   // names of step-*.set-aside-*
  std::vector<std::string> disposable() const;  // names of unfinished saves, trash and probes

  // As CheckpointReader's methods of these names; they also refuse a checkpoint under the name of another step.
  CheckpointReader open(int64_t step) const;
  CheckpointReader open_manifest(int64_t step) const;

 private:
  std::vector<std::string> names() const;

  std::string directory_;
};

// The store at `path`, which is a directory of checkpoints or a run's directory with `checkpoints` in it.
CheckpointStore store_at(const std::string& path);

}  // namespace tokamak
