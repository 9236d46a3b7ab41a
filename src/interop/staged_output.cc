#include "interop/staged_output.h"

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/lock.h"

namespace tokamak {

namespace {

// "a/b/" names what "a/b" names.
std::string without_slash(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path : path.substr(0, end + 1);
}

}  // namespace

StagedOutput::StagedOutput(std::string path, What what) : path_(without_slash(path)), what_(what) {
  const bool empty_directory =
      what == What::kDirectory && is_directory(path_) && list_directory(path_, Kind::kConfig).empty();
  if (exists(path_) && !empty_directory) {
    fail(Kind::kConfig, str("the output ", path_, " exists"), "name one that does not, or remove it");
  }
  const std::string parent = parent_directory(path_);
  if (!is_directory(parent)) fail(Kind::kConfig, str("there is no directory ", parent, " to write ", path_, " into"));
  staging_ = str(path_, ".tmp-", current_incarnation().id);
  if (what_ == What::kDirectory) make_directories(staging_, Kind::kCheckpoint);
}

StagedOutput::~StagedOutput() {
  if (staging_.empty()) return;
  try {
    remove_tree(staging_, Kind::kCheckpoint);
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

void StagedOutput::commit() {
  if (what_ == What::kDirectory) sync_directory(staging_, Kind::kCheckpoint);
  rename_path(staging_, path_, Kind::kCheckpoint);
  staging_.clear();
  sync_directory(parent_directory(path_), Kind::kCheckpoint);
}

}  // namespace tokamak
