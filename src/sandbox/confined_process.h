// A process of its own group, which gets an input and says something on its standard output and error. No descriptor
// and no variable of ours reaches it, none of its output can block or fill this process, and it never outlives its
// ConfinedProcess.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace tokamak {

class ConfinedProcess {
 public:
  // Starts words[0], a path. It reads `input` from its standard input and `filter` from descriptor 3. Error(kDevice) if
  // that fails.
  ConfinedProcess(const std::vector<std::string>& words, const std::string& input, const std::string& filter);
  ~ConfinedProcess() { end(); }
  ConfinedProcess(const ConfinedProcess&) = delete;
  ConfinedProcess& operator=(const ConfinedProcess&) = delete;

  // Waits for output. False when now_seconds() has reached `deadline`, or when there will be no more.
  bool read_more(double deadline);
  // The first bytes of each, at most kMostRead.
  const std::string& output() const { return output_.text; }
  const std::string& errors() const { return errors_.text; }
  static constexpr size_t kMostRead = 8192;

  // Standard error is closed. A process that gives that away to none ends with it.
  bool has_ended() const { return !errors_.end; }
  // Kills the group if it has not ended, and waits until its output is closed. Returns its exit code, 128 + N after
  // signal N.
  int end();

 private:
  struct Stream {
    Descriptor end;
    std::string text;
  };
  static void read_from(Stream& stream);

  Stream output_, errors_;
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

}  // namespace tokamak
