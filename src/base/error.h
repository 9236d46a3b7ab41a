// How a run ends in failure. Errors have audiences: fail() is for the user (bad config, data, disk), CHECK for
// our own mistakes. Every message names what was wrong with its values, and says what to do where we know it.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/strings.h"

namespace tokamak {

// The kind of an error is the process's exit code.
enum class Kind : int {
  kBug = 1,          // a broken promise of ours
  kConfig = 2,       // config file or command line
  kData = 3,         // data set, tokenizer, text
  kCheckpoint = 4,   // checkpoint directory
  kDevice = 5,       // device or a library of it missing, too little memory
  kComm = 6,         // communication, watchdog
  kNumerics = 7,     // loss or gradients not finite, too often; corrupted data
  kDeviceFault = 8,  // a device that was there failed in use: illegal access, trap, an error of its libraries
  kUnsupported = 9,  // a device or driver refuses what an option requires: a graph that it cannot capture
  kStopped = 75,     // saved and wants to be started again (EX_TEMPFAIL)
};

class Error : public std::exception {
 public:
  Error(Kind kind, std::string what, std::string hint = "")
      : kind_(kind), what_(std::move(what)), hint_(std::move(hint)) {}

  Kind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }
  const char* what() const noexcept override { return what_.c_str(); }  // one sentence, with the values
  const std::string& hint() const { return hint_; }                     // what to do about it; may be empty

 private:
  Kind kind_;
  std::string what_;
  std::string hint_;
};

// Ends the run: throws Error. Caught where a process ends: main, cli/run_context, and comm/collective_error,
// which makes all ranks end alike.
[[noreturn]] void fail(Kind kind, std::string what, std::string hint = "");

// As fail, with the operating system's reason for errno appended to `what`.
[[noreturn]] void fail_errno(Kind kind, std::string what, std::string hint = "");

[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& message);

}  // namespace tokamak

// CHECK(condition, values...): the values are concatenated into the message. Stays on in release builds.
#define TOKAMAK_CHECK(condition, ...)                                                       \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::tokamak::check_failed(#condition, __FILE__, __LINE__, ::tokamak::str(__VA_ARGS__)); \
  } while (false)
