#include "sweep/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace tokamak {

namespace {

// The cores of this process's own mask at these places.
cpu_set_t mask_of(const std::vector<int>& places) {
  cpu_set_t all, mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return mask;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  }
  for (const int place : places) CPU_SET(cores.at(place), &mask);
  return mask;
}

}  // namespace

Child::Child(const ChildCommand& command) {
  // Everything that allocates comes before fork: other threads may hold a lock of the allocator.
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (command.devices.empty() || !starts_with(*variable, "CUDA_VISIBLE_DEVICES=")) variables.emplace_back(*variable);
  }
  if (!command.devices.empty()) variables.push_back("CUDA_VISIBLE_DEVICES=" + command.devices);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const cpu_set_t cores = mask_of(command.cores);
  const Descriptor file = open_regular(command.output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  if (!file) fail(Kind::kConfig, str("cannot create ", command.output, ": ", open_problem(errno)));
  const std::string problem = str("cannot start ", command.words.at(0), "\n");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail_errno(Kind::kConfig, "cannot make a process");
  if (pid_ > 0) return;
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (::getppid() != parent) ::_exit(128 + SIGUSR1);  // it died in between
  if (!command.cores.empty()) sched_setaffinity(0, sizeof(cores), &cores);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
  ::execvpe(words[0], words.data(), environment.data());
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, problem.data(), problem.size());
  ::_exit(127);
}

Child::~Child() {
  if (pid_ <= 0) return;
  ask_to_stop();
  ::waitpid(pid_, nullptr, 0);
}

std::optional<int> Child::ended() {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::ask_to_stop() const { ::kill(pid_, SIGUSR1); }

std::vector<int> share_of(int slot, int slots, int count) {
  std::vector<int> share;
  for (int i = slot * count / slots; i < (slot + 1) * count / slots; ++i) share.push_back(i);
  if (share.empty()) share.push_back(slot % count);
  return share;
}

}  // namespace tokamak
