// Output that appears whole or not at all: it is written next to its place and renamed at the end. The temporary name
// is NAME.tokamak-tmp-<host>.<time>.<process>, so that it collides with no other process and no user's file.
#pragma once

#include <string>

#include "base/file.h"

namespace tokamak {

// Whether commit() may replace an existing output.
enum class Existing { kRefuse, kReplace };

// Whether another process is surely writing `path` in this way. A file system without locks does not tell: false.
bool has_writer(const std::string& path);

class StagedOutput {
 public:
  enum class What { kFile, kDirectory };

  // Errors of writing are of `kind`. Error(kConfig) if the parent of `path` is missing, another process is writing
  // `path`, or an output exists that commit() may not replace; a directory may always replace an empty one. Removes
  // remains of an interrupted process, with a warning.
  StagedOutput(const std::string& path, What what, Kind kind, Existing existing = Existing::kRefuse);
  ~StagedOutput();  // removes uncommitted output
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  // The place to write to: an empty directory or file.
  const std::string& staging() const { return staging_; }

  // Gives the synced files their name. Durable on return.
  void commit();

 private:
  void remove_leftovers() const;

  std::string path_;
  std::string staging_;  // "" once committed
  What what_;
  Kind kind_;
  Existing existing_;
  Descriptor lock_;  // on staging_; shows other processes that this one is alive
};

}  // namespace tokamak
