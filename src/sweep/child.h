// A child process in a session of its own, so that Ctrl-C in a terminal reaches the sweep alone. It gets SIGUSR1 if
// this process dies: mpirun forwards that signal to its ranks, which then save.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

struct ChildCommand {
  std::vector<std::string> words;
  std::string output;           // a file for standard output and error; replaced
  std::vector<int> cores = {};  // that it may use; empty: all
  std::string devices = "";     // CUDA_VISIBLE_DEVICES; "": unchanged
};

class Child {
 public:
  explicit Child(const ChildCommand& command);  // Error(kConfig) if the process cannot be made
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child();  // asks a child that still runs to stop, and waits

  // The exit code once it has ended, 128 + N after signal N, 127 if the program cannot be started. Does not wait.
  std::optional<int> ended();
  void ask_to_stop() const;  // SIGUSR1

 private:
  pid_t pid_;
};

// The shares of `count` things (cores, GPUs) that the `slot`th of `slots` children gets; at least one thing.
std::vector<int> share_of(int slot, int slots, int count);

}  // namespace tokamak
