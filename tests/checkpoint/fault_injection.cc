#include "checkpoint/fault_injection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/file.h"

namespace tokamak {

namespace {

// A change that a power loss undoes until the directory with the name is synced.
struct PendingName {
  enum class Kind { kFile, kDirectory, kRename } kind;
  std::string path;
  std::string before;  // the old path of a rename
};

struct State {
  bool armed = false;
  FaultPlan plan;
  std::vector<std::string> operations;
  std::map<int, std::string> paths;      // of open descriptors
  std::set<int> writable;                // descriptors whose close can report lost data
  std::map<std::string, bool> unsynced;  // files with data that fsync has not seen
  std::vector<PendingName> pending;
  std::function<void()> before_flock;
  int64_t renames_left = 0;
  std::function<void()> before_rename;
};

// Ranks may be threads. Recursive, since the action of before_next_flock() performs file operations, too.
std::recursive_mutex& turn() {
  static std::recursive_mutex mutex;
  return mutex;
}

State& state() {
  static State instance;
  return instance;
}

std::string moved(const std::string& path, const std::string& from, const std::string& to) {
  if (path == from) return to;
  return path.rfind(from + "/", 0) == 0 ? to + path.substr(from.size()) : path;
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

void lose_power(bool names_too) {
  State& s = state();
  s.armed = false;
  for (const auto& [path, dirty] : s.unsynced) {
    if (dirty) ::truncate(path.c_str(), 0);
  }
  if (names_too) {
    for (auto name = s.pending.rbegin(); name != s.pending.rend(); ++name) {
      if (name->kind == PendingName::Kind::kRename) {
        ::syscall(SYS_rename, name->path.c_str(), name->before.c_str());
        for (auto earlier = name + 1; earlier != s.pending.rend(); ++earlier) {
          earlier->path = moved(earlier->path, name->path, name->before);
        }
      } else {
        std::error_code ignored;
        std::filesystem::remove_all(name->path, ignored);  // also what a directory holds
      }
    }
  }
  die();
}

// Records an operation. Returns true, with errno set, if it must fail. Sets `half` if a write must take half.
bool strike(const std::string& what, const std::string& path, bool* half = nullptr) {
  State& s = state();
  if (!s.armed || path.rfind(s.plan.under, 0) != 0) return false;
  s.operations.push_back(what + " " + path);
  if (static_cast<int64_t>(s.operations.size()) != s.plan.at) return false;
  switch (s.plan.fault) {
    case Fault::kNone:
      return false;
    case Fault::kError:
      errno = s.plan.error;
      return true;
    case Fault::kShortWrite:
    case Fault::kTornWrite:
      if (half != nullptr) *half = true;
      return false;
    case Fault::kKill:
      die();
    case Fault::kPowerLoss:
    case Fault::kPowerLossOfData:
      lose_power(s.plan.fault == Fault::kPowerLoss);
  }
  return false;
}

std::string path_of(int fd) {
  const auto found = state().paths.find(fd);
  return found == state().paths.end() ? "" : found->second;
}

void renamed(const std::string& from, const std::string& to) {
  State& s = state();
  for (auto& [fd, path] : s.paths) path = moved(path, from, to);
  std::map<std::string, bool> unsynced;
  for (const auto& [path, dirty] : s.unsynced) unsynced[moved(path, from, to)] = dirty;
  s.unsynced = unsynced;
  for (PendingName& name : s.pending) name.path = moved(name.path, from, to);
  s.pending.push_back({PendingName::Kind::kRename, to, from});
}

void synced(const std::string& path) {
  State& s = state();
  s.unsynced.erase(path);
  std::erase_if(s.pending, [&](const PendingName& name) { return parent_directory(name.path) == path; });
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  State& s = state();
  const bool created = s.armed && (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  if ((flags & O_CREAT) != 0 && strike("open", path)) return -1;
  const int fd = static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
  if (fd >= 0 && s.armed) {
    s.paths[fd] = path;
    if ((flags & O_ACCMODE) != O_RDONLY) s.writable.insert(fd);
    if (created) s.pending.push_back({PendingName::Kind::kFile, path, ""});
    if ((flags & O_TRUNC) != 0) s.unsynced[path] = true;
  }
  return fd;
}

}  // namespace

void arm(const FaultPlan& plan) {
  state() = State();
  state().plan = plan;
  state().armed = true;
}

void disarm() { state().armed = false; }

void before_next_flock(std::function<void()> action) { state().before_flock = std::move(action); }

void before_rename(int64_t count, std::function<void()> action) {
  state().renames_left = count;
  state().before_rename = std::move(action);
}

const std::vector<std::string>& operations() { return state().operations; }

}  // namespace tokamak

// --- The C library's names. The signatures are POSIX's.

using namespace tokamak;

extern "C" {

int open(const char* path, int flags, ...) {
  const std::lock_guard lock(turn());
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  const std::lock_guard lock(turn());
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  const std::lock_guard lock(turn());
  bool half = false;
  const std::string path = path_of(fd);
  if (!path.empty()) {
    if (strike("write", path, &half)) return -1;
    state().unsynced[path] = true;
  }
  const ssize_t written = ::syscall(SYS_write, fd, bytes, half ? count / 2 : count);
  if (half && state().plan.fault == Fault::kTornWrite) die();
  return written;
}

int fsync(int fd) {
  const std::lock_guard lock(turn());
  const std::string path = path_of(fd);
  if (!path.empty() && strike("fsync", path)) return -1;
  const int result = static_cast<int>(::syscall(SYS_fsync, fd));
  if (!path.empty() && result == 0) synced(path);
  return result;
}

int close(int fd) {
  const std::lock_guard lock(turn());
  const std::string path = path_of(fd);
  state().paths.erase(fd);
  const bool fails = state().writable.erase(fd) > 0 && strike("close", path);
  const int reason = errno;
  const int result = static_cast<int>(::syscall(SYS_close, fd));
  if (!fails) return result;
  errno = reason;
  return -1;
}

// A function called flock would hide the constructor of struct flock.
int flock_of_test(int fd, int operation) noexcept __asm__("flock");
int flock_of_test(int fd, int operation) noexcept {
  const std::lock_guard lock(turn());
  if (state().before_flock) std::exchange(state().before_flock, nullptr)();
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

int rename(const char* from, const char* to) noexcept {
  {
    std::unique_lock lock(turn());
    const bool now = state().before_rename && --state().renames_left == 0;
    const std::function<void()> action = now ? std::exchange(state().before_rename, nullptr) : nullptr;
    lock.unlock();  // threads of the action may need the lock
    if (action) action();
  }
  const std::lock_guard lock(turn());
  if (strike("rename", from)) return -1;
  const int result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result == 0 && state().armed) renamed(from, to);
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  const std::lock_guard lock(turn());
  if (strike("mkdir", path)) return -1;
  const int result = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (result == 0 && state().armed) state().pending.push_back({PendingName::Kind::kDirectory, path, ""});
  return result;
}

int unlink(const char* path) noexcept {
  const std::lock_guard lock(turn());
  if (strike("unlink", path)) return -1;
  state().unsynced.erase(path);
  return static_cast<int>(::syscall(SYS_unlink, path));
}

// std::filesystem::remove_all passes a directory's descriptor; /proc has the directory's name.
int unlinkat(int directory, const char* name, int flags) noexcept {
  const std::lock_guard lock(turn());
  std::string path = name;
  if (directory != AT_FDCWD && path[0] != '/') {
    char link[4096];
    const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), link, sizeof(link));
    if (length > 0) path = std::string(link, static_cast<size_t>(length)) + "/" + name;
  }
  if (strike("unlinkat", path)) return -1;
  state().unsynced.erase(path);
  return static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags));
}

}  // extern "C"
