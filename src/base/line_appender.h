// A text file that lines are appended to, for weeks, on a disk that may be full for an hour. It holds whole lines only: of a
// line that the disk did not take wholly nothing stays, nor of one that a killed process or a crash has cut short.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tokamak {

class LineAppender {
 public:
  // Creates the file where there is none; Error where it cannot be opened. What follows its last newline is removed, with a
  // warning.
  LineAppender(std::string path, Kind kind);
  ~LineAppender();
  LineAppender(const LineAppender&) = delete;
  LineAppender& operator=(const LineAppender&) = delete;

  // `line` has no newline; it is given to the system in one write. Returns why it is not in the file, or "". After a
  // failure the file is opened again by the next call: it may be elsewhere by then (a remount, an NFS server's restart).
  std::string append(std::string_view line);

  const std::string& path() const { return path_; }

 private:
  bool open();
  std::string refused();  // the reason of errno; closes the file

  std::string path_;
  int fd_ = -1;
  bool torn_ = false;  // the file does not end with a newline, and cannot be cut
};

}  // namespace tokamak
