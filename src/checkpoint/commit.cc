#include "checkpoint/commit.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"

namespace tokamak {

namespace {

constexpr double kHeadroom = 1.2;

void write_manifest(const std::string& directory, const CheckpointManifest& manifest) {
  OutputFile file(directory + "/" + kManifestName, Kind::kCheckpoint);
  file.write(encode_manifest(manifest));
  file.sync();
  file.close();
  sync_directory(directory, Kind::kCheckpoint);
}

}  // namespace

void Committer::create_store() {
  make_directories(store_.directory(), Kind::kCheckpoint);
  if (is_writable_by_all(store_.directory())) {
    log::warning(store_.directory(), " is writable by every user of this machine, who can replace checkpoints. ",
                 "Remove that right (chmod o-w), or give run.output_dir a directory of its own");
  }
  // The names of the store and of the run's directory must survive a power loss too.
  const std::string parent = parent_directory(std::filesystem::absolute(store_.directory()).string());
  for (const std::string& above : {parent, parent_directory(parent)}) {
    try {
      sync_directory(above, Kind::kCheckpoint);
    } catch (const Error& error) {
      log::warning(error.what(), "; after a power loss, look for ", store_.directory(), " there");
    }
  }
}

void Committer::take_over() {
  for (const std::string& name : store_.disposable()) {
    try {
      remove(name);
      log::info("removed ", in_store(name), ", left by an earlier start");
    } catch (const Error& error) {
      log::warning(error.what());
    }
  }
}

const std::vector<int64_t>& Committer::abandon_after(int64_t step) {
  abandoned_ = store_.steps();
  std::erase_if(abandoned_, [&](int64_t other) { return other <= step; });
  return abandoned_;
}

// A run that goes back twice may abandon the same step twice, so a name may be taken.
std::vector<int64_t> Committer::steps() const {
  std::vector<int64_t> steps = store_.steps();
  std::erase_if(
      steps, [&](int64_t step) { return std::find(abandoned_.begin(), abandoned_.end(), step) != abandoned_.end(); });
  return steps;
}

std::string Committer::set_aside_path(const std::string& step, const std::string& incarnation) const {
  const std::string first = in_store(str(step, kSetAside, incarnation));
  std::string path = first;
  for (int number = 2; std::filesystem::exists(entry_at(path)); ++number) path = str(first, "-", number);
  return path;
}

// Renames an unfinished save first, so that its writer, if alive, can rename nothing out of it or through it. It may
// hold checkpoints that set_aside_abandoned() was moving.
void Committer::remove(const std::string& name) const {
  std::string path = in_store(name);
  if (!std::filesystem::exists(entry_at(path))) return;
  if (!starts_with(name, kTrash)) path = in_store(str(kTrash, name));
  if (path != in_store(name)) rename_path(in_store(name), path, Kind::kCheckpoint);
  const size_t mark = name.find(kUnfinished);
  // Links are not followed: another user could otherwise have the checkpoints of another run set aside.
  if (mark != std::string::npos && std::filesystem::is_directory(entry_at(path))) {
    for (const std::string& inside : list_directory(path, Kind::kCheckpoint)) {
      if (!parse_step_name(inside)) continue;
      const std::string to = set_aside_path(inside, name.substr(mark + kUnfinished.size()));
      rename_path(str(path, "/", inside), to, Kind::kCheckpoint);
      log::warning("set aside ", to, ": an earlier start ended while it did so");
    }
  }
  remove_tree(path, Kind::kCheckpoint);
}

void Committer::expect_space(int64_t bytes) {
  const auto needed = static_cast<int64_t>(kHeadroom * double(bytes));
  const int64_t there = free_bytes(store_.directory(), Kind::kCheckpoint);
  if (there < needed) {
    fail(Kind::kCheckpoint, str("the file system of ", store_.directory(), " has ", human_bytes(there),
                                " free, a checkpoint of ", human_bytes(bytes), " needs ", human_bytes(needed)));
  }
}

void Committer::probe() {
  // Free space does not show a quota or a read-only file system.
  const std::string path = in_store(str(kProbe, incarnation_));
  OutputFile probe(path, Kind::kCheckpoint);
  probe.write(std::string(4096, ' '));
  probe.sync();
  probe.close();
  remove_file(path, Kind::kCheckpoint);
}

std::string Committer::unfinished_path(int64_t step) const { return in_store(unfinished_name(step)); }

void Committer::begin(int64_t step) {
  const std::string path = unfinished_path(step);
  if (std::filesystem::is_symlink(entry_at(path))) remove_file(path, Kind::kCheckpoint);
  make_directories(path, Kind::kCheckpoint);
}

void Committer::discard(int64_t step) noexcept {
  try {
    remove(unfinished_name(step));
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

// Other ranks have written these files. If rank 0 does not see them, the nodes do not share the directory.
void Committer::expect_files(const CheckpointManifest& manifest) const {
  const std::string directory = unfinished_path(manifest.point.state.step);
  for (const SavedFile& file : manifest.files) {
    std::error_code code;
    const auto bytes = std::filesystem::file_size(directory + "/" + file.name, code);
    if (code || static_cast<int64_t>(bytes) != file.bytes) {
      fail(Kind::kCheckpoint, str("rank 0 does not see ", directory, "/", file.name, " as it was written: ",
                                  code ? code.message() : str("it finds ", bytes, " bytes of ", file.bytes),
                                  "; is run.output_dir on a file system that all nodes share?"));
    }
  }
}

bool Committer::commit(const CheckpointManifest& manifest, const DirectoryLock& lock) {
  const int64_t step = manifest.point.state.step;
  const std::string directory = unfinished_path(step);
  try {
    expect_files(manifest);
    write_manifest(directory, manifest);
    switch (lock.fence()) {
      case Fence::kAnothers:
        return false;
      case Fence::kUnreadable:
        fail(Kind::kCheckpoint, str("the lock of ", store_.directory(), " cannot be read, so its owner is unknown"));
      case Fence::kOurs:
        break;
    }
    set_aside_abandoned(step);
    rename_path(directory, store_.path_of(step), Kind::kCheckpoint);
  } catch (const Error&) {
    if (lock.fence() == Fence::kAnothers) return false;  // the other start removed our files: not a disk error
    throw;
  }
  sync_directory(store_.directory(), Kind::kCheckpoint);
  return true;
}

// Steps before `step` are included. Otherwise retention would keep a damaged one of them, and remove the sound one that
// the run began from. This comes before the rename, since a process that died in between would leave a later step as
// the newest. Each goes through the unfinished save: if this process stalled after it checked the fence, a later start
// may own these steps. That start has removed the unfinished save, so the rename fails.
void Committer::set_aside_abandoned(int64_t step) {
  for (; !abandoned_.empty(); abandoned_.pop_back()) {
    const int64_t later = abandoned_.back();
    if (!exists(store_.path_of(later))) continue;
    const std::string through = str(unfinished_path(step), "/", step_name(later));
    const std::string to = set_aside_path(step_name(later), incarnation_);
    rename_path(store_.path_of(later), through, Kind::kCheckpoint);
    rename_path(through, to, Kind::kCheckpoint);
    read_.erase(later);
    log::warning("set aside ", to, ": this run starts before it and now saves step ", step);
  }
}

void Committer::has_read(int64_t step, const std::string& problem) {
  read_[step] = problem.empty() ? Soundness::kSound : Soundness::kDamaged;
  if (!problem.empty()) {
    log::warning(store_.path_of(step), " is damaged and does not count among checkpoint.keep_latest: ", problem);
  }
}

Committer::Soundness Committer::soundness(int64_t step) const {
  const auto found = read_.find(step);
  return found == read_.end() ? Soundness::kUnknown : found->second;
}

std::vector<int64_t> Committer::unread(int64_t newest, int64_t keep) const {
  if (keep <= 0) return {};
  std::vector<int64_t> to_read;
  int64_t kept = 0;
  const std::vector<int64_t> steps = store_.steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (*step > newest || soundness(*step) == Soundness::kDamaged) continue;
    if (kept++ == keep) return to_read;
    if (*step == newest && keep > 1) continue;
    if (soundness(*step) == Soundness::kUnknown) to_read.push_back(*step);
  }
  return {};  // no checkpoint is beyond `keep`
}

void Committer::remove_checkpoints(const std::vector<int64_t>& steps) {
  if (steps.empty()) return;
  const auto trash = [&](int64_t step) { return in_store(str(kTrash, step_name(step), "-", incarnation_)); };
  for (const int64_t step : steps) rename_path(store_.path_of(step), trash(step), Kind::kCheckpoint);
  // Otherwise a power loss may bring back the old name with half of the files.
  sync_directory(store_.directory(), Kind::kCheckpoint);
  for (const int64_t step : steps) remove_tree(trash(step), Kind::kCheckpoint);
}

// Deletes remains of removals that failed half-way.
void Committer::remove_trash() const {
  for (const std::string& name : store_.disposable()) {
    if (!starts_with(name, kTrash)) continue;
    try {
      remove_tree(in_store(name), Kind::kCheckpoint);
    } catch (const Error& error) {
      log::warning(error.what(), "; the next save tries again");
    }
  }
}

void Committer::retain(int64_t newest, int64_t keep, const DirectoryLock& lock) noexcept {
  try {
    if (lock.fence() == Fence::kOurs) remove_trash();
    if (keep <= 0) return;
    const std::vector<int64_t> steps = store_.steps();
    std::vector<int64_t> superfluous;
    int64_t kept = 0;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (*step > newest || soundness(*step) == Soundness::kDamaged) continue;
      if (kept == keep) {
        superfluous.push_back(*step);
      } else if (soundness(*step) == Soundness::kSound || (*step == newest && keep > 1)) {
        ++kept;
      }
    }
    if (lock.fence() == Fence::kOurs) remove_checkpoints(superfluous);
  } catch (const std::exception& error) {
    log::warning("old checkpoints could not be removed: ", error.what());
  }
}

}  // namespace tokamak
