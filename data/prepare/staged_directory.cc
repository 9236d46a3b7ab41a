#include "data/prepare/staged_directory.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "data/manifest.h"

namespace tokamak {

namespace {

bool holds_data_set(const std::string& path) {
  for (const std::string part : {"/", "/train/", "/validation/"}) {
    if (exists(path + part + kDatasetManifest)) return true;
  }
  return false;
}

bool is_empty(const std::string& path) { return list_directory(path, Kind::kData).empty(); }

}  // namespace

StagedDirectory::StagedDirectory(std::string path, Existing existing) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  staging_ = path_ + ".tmp";
  if (path_.empty()) fail(Kind::kConfig, "the output directory has no name");
  if (exists(path_) && !is_directory(path_)) fail(Kind::kConfig, str("output ", path_, " is not a directory"));
  if (exists(path_) && !is_empty(path_)) {
    if (existing == Existing::kRefuse) {
      fail(Kind::kConfig, str("output directory ", path_, " is not empty"),
           holds_data_set(path_) ? "choose another, or pass --overwrite" : "choose another");
    }
    if (!holds_data_set(path_)) {
      fail(Kind::kConfig, str("output directory ", path_, " holds something other than a data set"),
           "--overwrite replaces data sets only; remove the directory yourself if that is meant");
    }
  }
  if (exists(staging_)) {
    log::warning("removing ", staging_, ", left by an interrupted run");
    remove_tree(staging_, Kind::kData);
  }
  make_directories(staging_, Kind::kData);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove_all(staging_, ignored);
}

void StagedDirectory::commit() {
  const std::string old = path_ + ".old";
  const bool replaces = exists(path_);
  if (replaces) rename_path(path_, old, Kind::kData);
  rename_path(staging_, path_, Kind::kData);
  committed_ = true;
  sync_directory(parent_directory(path_), Kind::kData);
  if (replaces) remove_tree(old, Kind::kData);
}

}  // namespace tokamak
