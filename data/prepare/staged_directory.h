// An output directory that appears whole or not at all: everything is written to PATH.tmp, and commit() renames it.
#pragma once

#include <string>

namespace tokamak {

// Whether a directory that is there already may be replaced.
enum class Existing { kRefuse, kReplace };

class StagedDirectory {
 public:
  // Error(kConfig) if `path` is there and not empty, and either kRefuse or no data set: no other directory is ever
  // replaced. What an interrupted run left in PATH.tmp is removed.
  StagedDirectory(std::string path, Existing existing);
  ~StagedDirectory();  // without commit(): removes what was written
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& staging() const { return staging_; }  // where to write
  void commit();

 private:
  std::string path_;
  std::string staging_;
  bool committed_ = false;
};

}  // namespace tokamak
