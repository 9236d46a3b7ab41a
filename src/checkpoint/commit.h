// Rank 0's disk operations that make a save all or nothing. The process may die, the machine lose power or the disk be
// full between any two of them: an older checkpoint or the new one is always whole. All errors are Error(kCheckpoint).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/lock.h"
#include "checkpoint/store.h"

namespace tokamak {

class Committer {
 public:
  Committer(CheckpointStore store, std::string incarnation)
      : store_(std::move(store)), incarnation_(std::move(incarnation)) {}

  const std::string& incarnation() const { return incarnation_; }

  void create_store();  // durable on return

  // Called once, when this start owns the directory. Deletes unfinished saves, trash and probes of earlier starts, and
  // completes what they were setting aside. Failures are warnings. Afterwards no earlier start can commit or set aside,
  // even one that has passed the fence: its renames go through directories that are deleted here.
  void take_over();

  // The run continues from this step, and abandons the checkpoints of later ones: the next commit sets them aside.
  // Returns their steps.
  const std::vector<int64_t>& abandon_after(int64_t step);
  // The steps of the store that are not abandoned, ascending. Not during commit().
  std::vector<int64_t> steps() const;

  void expect_space(int64_t bytes);  // fails unless the file system has 1.2 times as many bytes free
  void probe();                      // fails unless a file can be written, synced and removed

  std::string unfinished_path(int64_t step) const;
  void begin(int64_t step);             // makes unfinished_path(step); any rank may be first
  void discard(int64_t step) noexcept;  // removes unfinished_path(step); a failure is a warning

  // Adds the manifest to the synced files in unfinished_path(manifest.point.state.step), sets aside what
  // abandon_after() returned, and gives the directory its name. Durable on return. False, with nothing committed, if
  // another start owns the store by now.
  bool commit(const CheckpointManifest& manifest, const DirectoryLock& lock);

  // Notes that a committed checkpoint was read back; an empty `problem` means that it is sound.
  void has_read(int64_t step, const std::string& problem);
  // Checkpoints to read back before retain() can delete any beyond `keep` (0: keeps all).
  std::vector<int64_t> unread(int64_t newest, int64_t keep) const;
  // Keeps `newest` and the keep - 1 checkpoints before it that were found sound, and deletes older ones. With a `keep`
  // of 1, `newest` must have been read back too. Damaged ones are kept in addition. Also deletes remains of earlier
  // removals. Does nothing if another start owns the store by now. Failures are warnings.
  void retain(int64_t newest, int64_t keep, const DirectoryLock& lock) noexcept;

 private:
  enum class Soundness { kUnknown, kSound, kDamaged };
  Soundness soundness(int64_t step) const;
  void set_aside_abandoned(int64_t step);
  void remove(const std::string& name) const;  // `name` is a disposable entry of the store
  void expect_files(const CheckpointManifest& manifest) const;
  void remove_trash() const;
  void remove_checkpoints(const std::vector<int64_t>& steps);
  std::string unfinished_name(int64_t step) const { return str(step_name(step), kUnfinished, incarnation_); }
  std::string in_store(const std::string& name) const { return store_.directory() + "/" + name; }
  std::string set_aside_path(const std::string& step, const std::string& incarnation) const;  // a free one

  CheckpointStore store_;
  std::string incarnation_;
  std::vector<int64_t> abandoned_;     // steps that the next commit sets aside
  std::map<int64_t, Soundness> read_;  // by this start
};

}  // namespace tokamak
