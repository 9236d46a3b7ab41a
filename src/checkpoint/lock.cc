#include "checkpoint/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"

namespace tokamak {

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A file that another process has put in the place of the one we opened is not the one to lock.
bool same_file(int fd, const std::string& path) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

}  // namespace

Incarnation current_incarnation() {
  const std::string job = from_environment("SLURM_JOB_ID");
  const std::string restart = from_environment("SLURM_RESTART_COUNT");
  if (job.empty()) return {process_name(), ""};
  return {process_name(str("job", job, ".", restart.empty() ? "0" : restart)), job};
}

DirectoryLock::DirectoryLock(const std::string& directory, Incarnation incarnation, double timeout)
    : path_(directory + "/.lock"), incarnation_(std::move(incarnation)) {
  text_ = str("incarnation ", incarnation_.id, "\njob ", incarnation_.job, "\nhost ", host_name(), "\npid ", ::getpid(),
              "\nsince ", utc_timestamp(), "\n");
  const Stopwatch waited;
  while (!acquire()) {
    if (held_by_our_job()) {
      log::warning("taking over ", directory, " from an earlier start of this job that is still alive: ", holder());
      remove_file(path_, Kind::kCheckpoint);
      continue;
    }
    if (waited.seconds() >= timeout) {
      fail(Kind::kCheckpoint, str("another run is writing to ", directory, " (", holder(), ")"),
           "End that run, or give this one another run.output_dir.");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

bool DirectoryLock::acquire() {
  for (;;) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail_errno(Kind::kCheckpoint, "cannot open " + path_);
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      if (same_file(fd_, path_)) return true;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      // The fence still keeps a leftover of an earlier start from committing.
      log::warning("the file system of ", path_, " knows no locks; a second run would not be noticed at its start");
      return true;
    } else if (errno == EWOULDBLOCK) {
      ::close(std::exchange(fd_, -1));
      return false;
    }
    ::close(std::exchange(fd_, -1));
  }
}

std::string DirectoryLock::holder() const {
  try {
    std::string text = read_text(path_, Kind::kCheckpoint);
    if (text.empty()) return "it has not given its name";
    text.pop_back();
    return join(split(text, '\n'), ", ");
  } catch (const Error&) {
    return "it has not given its name";
  }
}

bool DirectoryLock::held_by_our_job() const {
  if (incarnation_.job.empty()) return false;
  const std::vector<std::string> fields = split(holder(), ',');
  return std::any_of(fields.begin(), fields.end(),
                     [&](const std::string& field) { return trim(field) == "job " + incarnation_.job; });
}

void DirectoryLock::claim() {
  if (::ftruncate(fd_, 0) != 0) fail_errno(Kind::kCheckpoint, "cannot write " + path_);
  const ssize_t written = ::pwrite(fd_, text_.data(), text_.size(), 0);
  if (written != static_cast<ssize_t>(text_.size())) fail_errno(Kind::kCheckpoint, "cannot write " + path_);
  if (::fsync(fd_) != 0) fail_errno(Kind::kCheckpoint, "cannot sync " + path_);
}

bool DirectoryLock::still_ours() const {
  try {
    return read_text(path_, Kind::kCheckpoint) == text_;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tokamak
