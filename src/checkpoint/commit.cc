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
  file.write(encode_manifest(manifest).text);
  file.sync();
  file.close();
  sync_directory(directory, Kind::kCheckpoint);
}

}  // namespace

void Committer::create_store() {
  make_directories(store_.directory(), Kind::kCheckpoint);
  // Its own name, and that of the run's directory, must survive a power loss too.
  const std::string parent = parent_directory(std::filesystem::absolute(store_.directory()).string());
  for (const std::string& above : {parent, parent_directory(parent)}) {
    try {
      sync_directory(above, Kind::kCheckpoint);
    } catch (const Error& error) {
      log::warning(error.what(), "; after a power loss, look for ", store_.directory(), " there");
    }
  }
}

void Committer::remove_leftovers() {
  for (const std::string& name : store_.disposable()) {
    try {
      remove_tree(in_store(name), Kind::kCheckpoint);
      log::info("removed ", in_store(name), ", left by an earlier start");
    } catch (const Error& error) {
      log::warning(error.what());
    }
  }
}

void Committer::preflight(int64_t bytes) {
  const auto needed = static_cast<int64_t>(kHeadroom * static_cast<double>(bytes));
  const int64_t there = free_bytes(store_.directory(), Kind::kCheckpoint);
  if (there < needed) {
    fail(Kind::kCheckpoint, str("the file system of ", store_.directory(), " has ", human_bytes(there),
                                " free, a checkpoint of ", human_bytes(bytes), " needs ", human_bytes(needed)));
  }
  // Free space says nothing of a quota, or of a file system that has turned read-only.
  const std::string path = in_store(".probe-" + incarnation_);
  OutputFile probe(path, Kind::kCheckpoint);
  probe.write(std::string(4096, ' '));
  probe.sync();
  probe.close();
  remove_file(path, Kind::kCheckpoint);
}

std::string Committer::unfinished_path(int64_t step) const {
  return in_store(step_name(step) + ".tmp-" + incarnation_);
}

void Committer::begin(int64_t step) {
  remove_tree(unfinished_path(step), Kind::kCheckpoint);
  make_directories(unfinished_path(step), Kind::kCheckpoint);
}

void Committer::discard(int64_t step) noexcept {
  try {
    remove_tree(unfinished_path(step), Kind::kCheckpoint);
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

// Other ranks have written them; if they cannot be seen from here, the directory is not the same on all nodes.
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
  } catch (const Error&) {
    if (!lock.still_ours()) return false;  // whoever has it now has removed our files: no disk error
    throw;
  }
  if (!lock.still_ours()) return false;
  set_aside_from(step);
  rename_path(directory, store_.path_of(step), Kind::kCheckpoint);
  sync_directory(store_.directory(), Kind::kCheckpoint);
  return true;
}

// Before the rename, not after: were the process to die in between, a later step would pass for the truth.
void Committer::set_aside_from(int64_t step) {
  for (const int64_t later : store_.steps()) {
    if (later < step) continue;
    const std::string to = store_.path_of(later) + ".set-aside-" + incarnation_;
    rename_path(store_.path_of(later), to, Kind::kCheckpoint);
    log::warning("set aside ", to, ": this run starts before it and now saves step ", step);
  }
}

bool Committer::intact(int64_t step) const {
  try {
    store_.open(step);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Committer::remove_checkpoints(const std::vector<int64_t>& steps) {
  if (steps.empty()) return;
  const auto trash = [&](int64_t step) { return in_store(".trash-" + step_name(step) + "-" + incarnation_); };
  for (const int64_t step : steps) rename_path(store_.path_of(step), trash(step), Kind::kCheckpoint);
  // Else a power loss may bring the old name back, with half of the files.
  sync_directory(store_.directory(), Kind::kCheckpoint);
  for (const int64_t step : steps) remove_tree(trash(step), Kind::kCheckpoint);
}

void Committer::retain(int64_t newest, int64_t keep) noexcept {
  if (keep <= 0) return;
  try {
    const std::vector<int64_t> steps = store_.steps();
    std::vector<int64_t> superfluous;
    int64_t kept = 1;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (*step >= newest || !intact(*step)) continue;
      if (kept++ >= keep) superfluous.push_back(*step);
    }
    remove_checkpoints(superfluous);
  } catch (const std::exception& error) {
    log::warning("old checkpoints could not be removed: ", error.what());
  }
}

}  // namespace tokamak
