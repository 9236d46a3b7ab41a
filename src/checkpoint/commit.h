// What rank 0 does on disk so that a save is all or nothing. Between any two operations the process may die, the
// machine lose power, or the disk be full: an older checkpoint or the new one is always whole. All errors are
// Error(kCheckpoint).
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

  // Makes the directory, and makes it durable.
  void create_store();

  // Once, when the directory has become this start's. Deletes what earlier starts left behind: unfinished saves, trash,
  // probes; what they were about to set aside is set aside. Trouble is a warning. From here on no earlier start can
  // commit or set aside, even one that has passed the fence: its renames go out of, or through, what is deleted here.
  // Checkpoints of steps after `resumed` are noted: they belong to a course that this start leaves, and the first
  // commit sets them aside. Returns them.
  std::vector<int64_t> take_over(int64_t resumed);

  void expect_space(int64_t bytes);  // fails unless the file system has 1.2 times as much to give
  void probe();                      // fails unless it takes a file, its sync and its removal

  std::string unfinished_path(int64_t step) const;
  void begin(int64_t step);             // makes unfinished_path(step); each rank does, rank 0 or another first
  void discard(int64_t step) noexcept;  // removes it; trouble is a warning

  // The files lie, synced, in unfinished_path(manifest.point.state.step): adds the manifest and gives the directory its
  // name. Durable on return. False, with nothing committed, if the directory is another start's by now. What
  // take_over() noted is set aside first.
  bool commit(const CheckpointManifest& manifest, const DirectoryLock& lock);

  // What a reading of a committed checkpoint has found: nothing (it is sound), or what is wrong.
  void has_read(int64_t step, const std::string& problem);
  // Those that are to be read before retain() can delete what is beyond `keep` (0: nothing is).
  std::vector<int64_t> unread(int64_t newest, int64_t keep) const;
  // Keeps the checkpoint `newest` and the keep - 1 before it that were read and found sound (with a `keep` of 1,
  // `newest` must have been, too), deletes older ones. Damaged ones do not count and stay. Nothing goes if the
  // directory is another start's by now. What an earlier removal has left goes, too. Trouble is a warning.
  void retain(int64_t newest, int64_t keep, const DirectoryLock& lock) noexcept;

 private:
  enum class Soundness { kUnknown, kSound, kDamaged };
  Soundness soundness(int64_t step) const;
  void set_aside_left_course(int64_t step);
  void remove(const std::string& name) const;  // something disposable in the store
  void expect_files(const CheckpointManifest& manifest) const;
  void remove_trash() const;
  void remove_checkpoints(const std::vector<int64_t>& steps);
  std::string unfinished_name(int64_t step) const { return str(step_name(step), kUnfinished, incarnation_); }
  std::string in_store(const std::string& name) const { return store_.directory() + "/" + name; }

  CheckpointStore store_;
  std::string incarnation_;
  std::vector<int64_t> left_course_;   // steps that the first commit sets aside
  std::map<int64_t, Soundness> read_;  // by this start
};

}  // namespace tokamak
