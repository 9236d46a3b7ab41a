// Output that appears under its name whole, or not at all: it is written beside its place and renamed in the end. The
// name beside is NAME.tokamak-tmp-<host>.<time>.<process>, so that no two processes share one, and no file of the user's.
#pragma once

#include <string>

#include "base/error.h"

namespace tokamak {

// Whether commit() may replace what is there.
enum class Existing { kRefuse, kReplace };

class StagedOutput {
 public:
  enum class What { kFile, kDirectory };

  // Errors of writing are of `kind`. Error(kConfig) if the parent of `path` is not there, if another process is writing
  // `path`, or if something is there that commit() may not replace; an empty directory always may be, by a directory.
  // What an interrupted process has left beside `path` is removed, with a warning.
  StagedOutput(const std::string& path, What what, Kind kind, Existing existing = Existing::kRefuse);
  ~StagedOutput();  // removes what was not committed
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  // Where to write: an empty directory or file.
  const std::string& staging() const { return staging_; }

  // Its files have been synced: gives it its name. Durable on return.
  void commit();

 private:
  void remove_leftovers() const;

  std::string path_;
  std::string staging_;  // "" once it is committed
  What what_;
  Kind kind_;
  Existing existing_;
  int lock_ = -1;  // on staging_; tells other processes that this one is alive
};

}  // namespace tokamak
