#include "checkpoint/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"

namespace tokamak {

namespace {

constexpr int64_t kLongest = 4096;  // bytes of .lock

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// 0 if the variable is not set.
int64_t count_from_environment(const char* name) {
  const std::string text = from_environment(name);
  if (text.empty()) return 0;
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && rest == end && count >= 0) return count;
  fail(Kind::kConfig, str("the environment variable ", name, " is '", text, "', it should be a count"));
}

// The lines that name a start in .lock.
std::string text_of(const Incarnation& incarnation) {
  return str("incarnation ", incarnation.id, "\njob ", incarnation.job, "\nrequeues ", incarnation.requeues,
             "\nattempt ", incarnation.attempt, "\n");
}

constexpr std::string_view kOf = " of ";

// "pid:[4026531836]"; "" without /proc.
std::string pid_namespace() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

// The contents of .lock: the start that wrote it, and its process.
struct Holder {
  Incarnation incarnation;
  std::string host;
  int64_t pid = 0;
  std::string processes;  // the pid's namespace: containers of one pod share one host name
  int64_t since = 0;      // milliseconds since 1970; 0: unknown
};

Holder holder_in(const std::string& text) {
  Holder found;
  const auto number = [](const std::string& digits) { return std::strtoll(digits.c_str(), nullptr, 10); };
  for (const std::string& line : split(text, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "incarnation") found.incarnation.id = value;
    if (key == "job") found.incarnation.job = value;
    if (key == "requeues") found.incarnation.requeues = number(value);
    if (key == "attempt") found.incarnation.attempt = number(value);
    if (key == "host") found.host = value;
    if (key == "pid") {
      found.pid = number(value);
      const size_t of = value.find(kOf);
      if (of != std::string::npos) found.processes = value.substr(of + kOf.size());
    }
    if (key == "since") found.since = parse_utc(value).value_or(0);
  }
  return found;
}

// False if another process has replaced the file since it was opened.
bool same_file(int fd, const std::string& path) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

// The text that the lock's holder wrote; "" if it cannot be read.
std::string text_at(const std::string& path) {
  try {
    return read_text(path, Kind::kCheckpoint, kLongest);
  } catch (const Error&) {
    return "";
  }
}

// The text of .lock in one line. Outside a batch job it has no counts.
std::string describe_holder(const std::string& path) {
  std::vector<std::string> words;
  const std::string text = text_at(path);
  const bool has_job = !holder_in(text).incarnation.job.empty();
  for (const std::string& line : split(text, '\n')) {
    const std::string key = line.substr(0, line.find(' '));
    if (line.empty() || (!has_job && (key == "job" || key == "requeues" || key == "attempt"))) continue;
    words.push_back(line);
  }
  return words.empty() ? "holder unknown" : printable(join(words, ", "), 200);
}

bool follows_holder(const Incarnation& incarnation, const std::string& path) {
  return incarnation.follows(holder_in(text_at(path)).incarnation);
}

}  // namespace

bool Incarnation::follows(const Incarnation& other) const {
  return !job.empty() && job == other.job && std::pair(requeues, attempt) > std::pair(other.requeues, other.attempt);
}

Incarnation current_incarnation() {
  Incarnation own;
  own.job = from_environment("TOKAMAK_JOB");
  if (own.job.empty()) {
    own.job = from_environment("SLURM_JOB_ID");
    own.requeues = count_from_environment("SLURM_RESTART_COUNT");
  }
  own.attempt = count_from_environment("TOKAMAK_ATTEMPT");
  own.id = own.job.empty() ? process_name() : process_name(str("job", own.job, ".", own.requeues, ".", own.attempt));
  return own;
}

std::string run_in_the_way(const std::string& directory, const Incarnation& incarnation) {
  const std::string path = directory + "/.lock";
  const Descriptor fd = open_regular(path, O_RDONLY);
  if (!fd) return "";
  const bool held = ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return held && !follows_holder(incarnation, path) ? describe_holder(path) : "";
}

DirectoryLock::DirectoryLock(const std::string& directory, Incarnation incarnation, double timeout)
    : path_(directory + "/.lock"), incarnation_(std::move(incarnation)) {
  text_ = str(text_of(incarnation_), "host ", host_name(), "\npid ", ::getpid(), kOf, pid_namespace(), "\nsince ",
              utc_timestamp(), "\n");
  const Stopwatch waited;
  bool announced = false;
  while (!acquire()) {
    if (follows_holder(incarnation_, path_)) {
      log::warning("taking over ", directory,
                   " from an earlier start of this job that is still alive: ", describe_holder(path_));
      remove_file(path_, Kind::kCheckpoint);
      continue;
    }
    if (waited.seconds() >= timeout) {
      fail(Kind::kCheckpoint, str("another run is writing to ", directory, " (", describe_holder(path_), ")"),
           str("End that run, or give this one another run.output_dir. If its host is gone for good, remove ", path_,
               "."));
    }
    if (!std::exchange(announced, true)) {
      log::info("waiting up to ", fixed(timeout, 0), " s for another run to leave ", directory, " (",
                describe_holder(path_), ")");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

bool DirectoryLock::acquire() {
  for (;;) {
    fd_ = open_regular(path_, O_RDWR | O_CREAT);
    if (!fd_) fail(Kind::kCheckpoint, str("cannot open ", path_, ": ", open_problem(errno)));
    const bool locked = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
    if (locked && same_file(fd_.get(), path_)) return true;
    if (locked || errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    // The fence still keeps a leftover of an earlier start from committing.
    log::warning("the file system of ", path_, " has no locks; a second run would not be noticed at its start");
    return true;
  }
}

std::optional<bool> is_locked(const std::string& directory) {
  const std::string path = directory + "/.lock";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  // "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF" of visible processes. Stacked file systems show device numbers of
  // their own here, so only the inode is compared.
  const std::string inode = str(":", info.st_ino, " 0 EOF");
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") != std::string::npos && line.find(inode) != std::string::npos) return true;
  }
  const Holder holder = holder_in(text_at(path));
  const bool is_visible = holder.processes.empty() || holder.processes == pid_namespace();
  if (holder.host != host_name() || !is_visible || holder.since == 0) return std::nullopt;
  // A process that reuses the pid is younger than the lock.
  const std::optional<double> age = process_age(holder.pid);
  return age && 1e-3 * double(unix_milliseconds() - holder.since) < *age + 2;
}

void DirectoryLock::claim() {
  if (::ftruncate(fd_.get(), 0) != 0) fail_errno(Kind::kCheckpoint, "cannot write " + path_);
  const ssize_t written = ::pwrite(fd_.get(), text_.data(), text_.size(), 0);
  if (written != static_cast<ssize_t>(text_.size())) fail_errno(Kind::kCheckpoint, "cannot write " + path_);
  if (::fsync(fd_.get()) != 0) fail_errno(Kind::kCheckpoint, "cannot sync " + path_);
}

Fence DirectoryLock::fence() const {
  try {
    return read_text(path_, Kind::kCheckpoint, kLongest) == text_ ? Fence::kOurs : Fence::kAnothers;
  } catch (const Error&) {
    return Fence::kUnreadable;
  }
}

}  // namespace tokamak
