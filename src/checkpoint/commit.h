// What rank 0 does on disk so that a save is all or nothing. Between any two operations the process may die, the
// machine lose power, or the disk be full: an older checkpoint or the new one is always whole. All errors are
// Error(kCheckpoint).
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/lock.h"
#include "checkpoint/store.h"

namespace tokamak {

class Committer {
 public:
  Committer(CheckpointStore store, std::string incarnation)
      : store_(std::move(store)), incarnation_(std::move(incarnation)) {}

  // Makes the directory, and makes it durable.
  void create_store();

  // Deletes what earlier starts left behind: unfinished saves, trash, probes. Trouble is a warning.
  void remove_leftovers();

  // Fails unless the file system has 1.2 times `bytes` to give, and takes a file, its sync and its removal.
  void preflight(int64_t bytes);

  std::string unfinished_path(int64_t step) const;
  void begin(int64_t step);             // an empty unfinished_path(step)
  void discard(int64_t step) noexcept;  // removes it; trouble is a warning

  // The files lie, synced, in unfinished_path(manifest.point.state.step): adds the manifest and gives the directory its name.
  // Durable on return. False, with nothing committed, if the fence is no longer ours. Checkpoints of this step or later
  // come from a course that the run has left, or are damaged: they are set aside first.
  bool commit(const CheckpointManifest& manifest, const DirectoryLock& lock);

  // Keeps the checkpoint `newest` and the keep - 1 before it whose manifests and sizes are right, deletes older ones
  // (0: none). Damaged ones do not count and stay. Trouble is a warning.
  void retain(int64_t newest, int64_t keep) noexcept;

 private:
  bool intact(int64_t step) const;
  void set_aside_from(int64_t step);
  void expect_files(const CheckpointManifest& manifest) const;
  void remove_checkpoints(const std::vector<int64_t>& steps);
  std::string in_store(const std::string& name) const { return store_.directory() + "/" + name; }

  CheckpointStore store_;
  std::string incarnation_;
};

}  // namespace tokamak
