// Output that appears under its name whole, or not at all: it is written beside its place and renamed in the end.
#pragma once

#include <string>

namespace tokamak {

class StagedOutput {
 public:
  enum class What { kFile, kDirectory };

  // `path` must not exist, or be an empty directory where a directory is to be made; its parent must. Error(kConfig).
  StagedOutput(std::string path, What what);
  ~StagedOutput();  // removes what was not committed
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  // Where to write: a directory that is there, or a file to be made.
  const std::string& staging() const { return staging_; }

  // Its files have been synced: gives it its name. Durable on return. Error(kCheckpoint).
  void commit();

 private:
  std::string path_;
  std::string staging_;
  What what_;
};

}  // namespace tokamak
