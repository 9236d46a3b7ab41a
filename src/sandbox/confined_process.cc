#include "sandbox/confined_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>

#include "base/clock.h"
#include "base/error.h"

namespace tokamak {

namespace {

// A file without a name, open at its start. A reader never waits for its writer, nor the other way round.
Descriptor memory_file(const std::string& text) {
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) fail_errno(Kind::kDevice, "cannot make a file in memory");
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written > 0) done += static_cast<size_t>(written);
    if (written < 0 && errno != EINTR) fail_errno(Kind::kDevice, "cannot write a file in memory");
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_errno(Kind::kDevice, "cannot make a pipe");
    from = Descriptor(ends[0]);
    to = Descriptor(ends[1]);
  }
  Descriptor from, to;
};

// posix_spawn copies no page tables, which fork would in a process with much memory, and runs no code of ours in the
// new process.
pid_t spawn(const std::vector<std::string>& words, const std::array<int, 4>& descriptors) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<char*, 1> no_variables{};  // not even to bwrap, whose memory would keep those that it clears

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (size_t i = 0; i < descriptors.size(); ++i) {
    posix_spawn_file_actions_adddup2(&actions, descriptors[i], static_cast<int>(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, static_cast<int>(descriptors.size()));

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), no_variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0) fail_errno(Kind::kDevice, "cannot start " + words[0]);
  return pid;
}

}  // namespace

ConfinedProcess::ConfinedProcess(const std::vector<std::string>& words, const std::string& input,
                                 const std::string& filter) {
  const Descriptor in = memory_file(input), rules = memory_file(filter);
  Pipe output, errors;
  pid_ = spawn(words, {in.get(), output.to.get(), errors.to.get(), rules.get()});
  output_.end = std::move(output.from);
  errors_.end = std::move(errors.from);
}

bool ConfinedProcess::read_more(double deadline) {
  std::array<pollfd, 2> ends = {pollfd{output_.end.get(), POLLIN, 0}, pollfd{errors_.end.get(), POLLIN, 0}};
  if (!output_.end && !errors_.end) return false;
  const double left = std::clamp(deadline - now_seconds(), 0.0, 3600.0);
  if (::poll(ends.data(), ends.size(), static_cast<int>(std::ceil(left * 1e3))) <= 0) return now_seconds() < deadline;
  if (ends[0].revents != 0) read_from(output_);
  if (ends[1].revents != 0) read_from(errors_);
  return true;
}

void ConfinedProcess::read_from(Stream& stream) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::read(stream.end.get(), bytes.data(), bytes.size());
  if (count > 0) {
    stream.text.append(bytes.data(), std::min(static_cast<size_t>(count), kMostRead - stream.text.size()));
  } else if (count == 0 || errno != EINTR) {
    stream.end = Descriptor();
  }
}

int ConfinedProcess::end() {
  if (pid_ < 0) return exit_code_;
  if (!has_ended()) ::kill(-pid_, SIGKILL);
  const double deadline = now_seconds() + 10;
  while (read_more(deadline)) {  // until the kernel has ended them
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  pid_ = -1;
  return exit_code_;
}

}  // namespace tokamak
