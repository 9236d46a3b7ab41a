// A text file that lines are appended to, for weeks, on a disk that may be full for an hour. A line that was cut short, by
// a crash or by the disk, stays by itself: the next one begins on a line of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tokamak {

class LineAppender {
 public:
  LineAppender(std::string path, Kind kind);  // creates the file where there is none; Error where it cannot be opened
  ~LineAppender();
  LineAppender(const LineAppender&) = delete;
  LineAppender& operator=(const LineAppender&) = delete;

  // `line` has no newline; it is given to the system in one write. Returns why it is not in the file, or "". After a
  // failure the file is opened again by the next call: it may be elsewhere by then (a remount, an NFS server's restart).
  std::string append(std::string_view line);

  int64_t size() const;  // bytes of the file; 0 where it is not open
  // Goes on in the file that now has the name, which may be none yet.
  void reopen();
  const std::string& path() const { return path_; }

 private:
  bool open();
  std::string refused();  // the reason of errno; closes the file

  std::string path_;
  int fd_ = -1;
  bool torn_ = false;  // the file does not end with a newline
};

}  // namespace tokamak
