// Judges programs that a model wrote, such as answers to HumanEval and MBPP, in bubblewrap. Only a program that was
// executed to its end passes. It sees no network, no files of the user and no other process, and starts none. If any
// layer of the protection is missing, nothing is executed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct ProgramVerdict {
  enum class Outcome {
    kPassed,
    kFailed,       // an exception, SystemExit too, or an end without a verdict: os._exit, a signal
    kTimedOut,     // it was still running, and was killed
    kOutOfMemory,  // MemoryError
  };
  Outcome outcome = Outcome::kFailed;
  std::string error;  // printable, at most 4 KiB: "AssertionError: wrong", "no verdict, signal 11"; "" if it passed
};

struct SandboxOptions {
  double wall_time = 3;                         // seconds, as in the reference, openai/human-eval
  int64_t memory_bytes = int64_t{2} << 30;      // address space of the program, interpreter included
  int64_t file_bytes = int64_t{16} << 20;       // of one file
  int64_t directory_bytes = int64_t{64} << 20;  // of all files in /tmp, the one directory that it can write to
};

class Sandbox {
 public:
  // Judges two programs to see that everything works. Error(kConfig) if bwrap or python3 is missing, or if the system
  // refuses user namespaces; it has the words of bwrap.
  explicit Sandbox(const SandboxOptions& options = {});

  // May be called by several threads. Error(kDevice) if the interpreter does not start, which is no verdict.
  ProgramVerdict run(const std::string& program) const { return judge(program, options_.wall_time); }
  // On `workers` threads; verdict i is of program i.
  std::vector<ProgramVerdict> run_all(std::span<const std::string> programs, int workers) const;

  // Names all that verdicts depend on: "bubblewrap 0.8.0, Python 3.11.2, without numpy".
  const std::string& description() const { return description_; }

 private:
  ProgramVerdict judge(const std::string& program, double wall_time) const;

  SandboxOptions options_;
  std::vector<std::string> command_;
  std::string filter_;
  std::string description_;
};

}  // namespace tokamak
