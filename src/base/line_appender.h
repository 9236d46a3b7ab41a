// A text file to which lines are appended, for weeks, on a disk that may be full for an hour. It holds whole lines
// only: remains of a failed write, a killed process or a crash are removed.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"

namespace tokamak {

class LineAppender {
 public:
  // Creates the file if it is missing; Error if it cannot be opened. Removes text after the last newline, with a
  // warning.
  LineAppender(std::string path, Kind kind);

  // Appends `line`, which has no newline, in one write. Returns the reason of a failure, or "". After a failure the
  // next call opens the file again, which may have moved (a remount, an NFS server's restart).
  std::string append(std::string_view line);

  const std::string& path() const { return path_; }

 private:
  bool open();
  std::string refused();  // the text of errno; closes the file

  std::string path_;
  Descriptor fd_;
  bool torn_ = false;  // the file does not end with a newline, and cannot be cut
};

}  // namespace tokamak
