// The directory of a run's checkpoints, by name. Reading it changes nothing.
//
//   step-00000020/                          a committed checkpoint: manifest.json and one file per saved rank
//   step-00000020.tmp-<incarnation>/        a save that is under way, or was cut short
//   step-00000020.set-aside-<incarnation>/  damaged, or of a course that the run has left by starting from an older one
//   .trash-...                              on its way to be deleted
//   .lock                                   which run writes here (lock.h)
//
// The newest step whose manifest and files verify is the truth; there is no LATEST file that could say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/reader.h"

namespace tokamak {

// Between the name of a step and that of an incarnation.
inline constexpr std::string_view kUnfinished = ".tmp-";
inline constexpr std::string_view kSetAside = ".set-aside-";
// Before them.
inline constexpr std::string_view kTrash = ".trash-";
inline constexpr std::string_view kProbe = ".probe-";

std::string step_name(int64_t step);                              // 20 -> "step-00000020"
std::optional<int64_t> parse_step_name(const std::string& name);  // of a committed checkpoint

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string path_of(int64_t step) const { return directory_ + "/" + step_name(step); }

  // All empty where the directory does not exist. Error(kCheckpoint) if it cannot be listed.
  std::vector<int64_t> steps() const;           // of committed checkpoints, ascending
  std::vector<std::string> unfinished() const;  // names of step-*.tmp-*
  std::vector<std::string> set_aside() const;   // names of step-*.set-aside-*
  std::vector<std::string> disposable() const;  // names of unfinished saves, trash and probes

  // As CheckpointReader::open; also refuses a checkpoint under the name of another step.
  CheckpointReader open(int64_t step) const;
  CheckpointReader open_manifest(int64_t step) const;  // likewise

 private:
  std::vector<std::string> names() const;

  std::string directory_;
};

// What a person means who names a directory of checkpoints: itself or, of a run's directory, `checkpoints` in it.
CheckpointStore store_at(const std::string& path);

}  // namespace tokamak
