// How a run fails. fail() is for the user's mistakes (config, data, disk), CHECK for ours. Every message has the values
// that were wrong and, if known, what to do.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/strings.h"

namespace tokamak {

// The kind of an error is the process's exit code.
enum class Kind : int {
  kBug = 1,          // a bug of ours
  kConfig = 2,       // config file or command line
  kData = 3,         // data set, tokenizer, text
  kCheckpoint = 4,   // checkpoint directory
  kDevice = 5,       // a missing device or library, too little memory
  kComm = 6,         // communication, watchdog
  kNumerics = 7,     // loss or gradients not finite, too often; corrupted data
  kDeviceFault = 8,  // a device failed in use: illegal access, trap, an error of its libraries
  kUnsupported = 9,  // a device or driver refuses an option: a graph that it cannot capture
  kStopped = 75,     // the run has saved and should be started again (EX_TEMPFAIL)
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

// Ends the run by throwing Error. main and cli/run_context catch it at the end of a process. comm/collective_error
// catches it to make all ranks end in the same way.
[[noreturn]] void fail(Kind kind, std::string what, std::string hint = "");

// As fail, with the operating system's reason for errno appended to `what`.
[[noreturn]] void fail_errno(Kind kind, std::string what, std::string hint = "");

[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& message);

}  // namespace tokamak

// CHECK(condition, values...): the values are concatenated into the message. Active in release builds.
#define TOKAMAK_CHECK(condition, ...)                                                       \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::tokamak::check_failed(#condition, __FILE__, __LINE__, ::tokamak::str(__VA_ARGS__)); \
  } while (false)

// A place that no correct program reaches, such as the end of a switch over all values. Fails as a CHECK does, and the
// compiler knows that the function ends there.
#define TOKAMAK_UNREACHABLE(...) ::tokamak::check_failed("unreachable", __FILE__, __LINE__, ::tokamak::str(__VA_ARGS__))
