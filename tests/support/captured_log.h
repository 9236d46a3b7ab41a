// Captures standard error in a scope: the log's warnings are part of the contract.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/log.h"
#include "support/temp_dir.h"

namespace tokamak {

class CapturedLog {
 public:
  CapturedLog() : before_(::dup(2)) {
    const int file = ::open(dir_.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(file, 2);
    ::close(file);
  }
  ~CapturedLog() { restore(); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // Ends the capture.
  std::string text() {
    restore();
    return read_text(dir_.file("log"), Kind::kBug);
  }

 private:
  void restore() {
    if (before_ < 0) return;
    log::flush();
    ::dup2(before_, 2);
    ::close(std::exchange(before_, -1));
  }

  TempDir dir_;
  int before_;
};

}  // namespace tokamak
