#include "doctor/disk_probes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace tokamak::doctor {

namespace {

constexpr Kind kProbeKind = Kind::kCheckpoint;
constexpr int64_t kFirstPiece = int64_t{1} << 20;
constexpr int64_t kBlock = 4096;

void put_text(const std::string& path, const std::string& text) {
  OutputFile file(path, kProbeKind);
  file.write(text);
  file.sync();
  file.close();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, const std::byte* from, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(fd, from, static_cast<size_t>(bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_errno(kProbeKind, "cannot write the file that measures the disk");
    from += written;
    bytes -= written;
  }
}

void sync_all(int fd) {
  if (::fsync(fd) != 0) fail_errno(kProbeKind, "cannot sync the file that measures the disk");
}

}  // namespace

std::string wrong_with_rename(const std::string& directory) {
  const std::string first = directory + "/first", second = directory + "/second";
  put_text(first, "old");
  put_text(second, "new");
  rename_path(second, first, kProbeKind);
  if (exists(second)) return "a renamed file still has its old name";
  if (read_text(first, kProbeKind) != "new") return "a file renamed over another one has not replaced it";

  const std::string step = directory + "/step", committed = directory + "/committed";
  make_directories(step, kProbeKind);
  put_text(step + "/manifest", "whole");
  rename_path(step, committed, kProbeKind);
  sync_directory(directory, kProbeKind);
  if (exists(step) || !exists(committed + "/manifest")) return "a directory cannot be renamed as a whole";
  make_directories(step, kProbeKind);
  put_text(step + "/manifest", "another");
  if (std::rename(step.c_str(), committed.c_str()) == 0) return "a directory can be renamed over one that is not empty";
  return "";
}

std::string wrong_with_lock(const std::string& directory) {
  const std::string path = directory + "/two_locks";
  const Descriptor first(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const Descriptor second(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (first.get() < 0 || second.get() < 0) return str("cannot open ", path, ": ", std::strerror(errno));
  if (::flock(first.get(), LOCK_EX | LOCK_NB) != 0) return str("flock: ", std::strerror(errno));
  if (::flock(second.get(), LOCK_EX | LOCK_NB) == 0) return "flock gives the same file to two descriptors";
  if (errno != EWOULDBLOCK) return str("flock of a locked file: ", std::strerror(errno));
  if (::flock(first.get(), LOCK_UN) != 0) return str("flock, unlock: ", std::strerror(errno));
  return ::flock(second.get(), LOCK_EX | LOCK_NB) == 0 ? "" : "flock does not give a file that was unlocked";
}

HeldLock::HeldLock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  held_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
}

HeldLock::~HeldLock() {
  if (fd_ >= 0) ::close(fd_);
}

DiskRate measure_disk(const std::string& directory, const DiskRateOptions& options) {
  std::string path = directory + "/rate-XXXXXX";
  const Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) fail_errno(kProbeKind, str("cannot create ", path));
  if (::unlink(path.c_str()) != 0) fail_errno(kProbeKind, str("cannot remove ", path));

  // Not constant, as some file systems compress.
  std::vector<std::byte> data(static_cast<size_t>(std::max(options.bytes / 2, kFirstPiece)));
  uint32_t state = 1;
  for (std::byte& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }

  DiskRate rate;
  const Stopwatch watch;
  write_all(file.get(), data.data(), kBlock);
  sync_all(file.get());
  rate.fsync_seconds = watch.seconds();
  rate.bytes = kBlock;
  int64_t largest = 0;
  for (int64_t piece = kFirstPiece; rate.bytes < options.bytes && watch.seconds() < options.seconds; piece *= 2) {
    const int64_t bytes = std::min({piece, options.bytes - rate.bytes, static_cast<int64_t>(data.size())});
    const Stopwatch piece_watch;
    write_all(file.get(), data.data(), bytes);
    sync_all(file.get());
    rate.bytes += bytes;
    if (bytes < largest) continue;  // the rest: its fsync counts for too much
    largest = bytes;
    rate.write_rate = static_cast<double>(bytes) / piece_watch.seconds();
  }
  rate.finished = rate.bytes >= options.bytes;

  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  const Stopwatch read_watch;
  int64_t at = 0;
  while (at < rate.bytes && read_watch.seconds() < options.seconds) {
    const auto most = static_cast<size_t>(std::min<int64_t>(kFirstPiece, rate.bytes - at));
    const ssize_t got = ::pread(file.get(), data.data(), most, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_errno(kProbeKind, "cannot read back the file that measures the disk");
    at += got;
  }
  rate.read_rate = static_cast<double>(at) / read_watch.seconds();
  return rate;
}

}  // namespace tokamak::doctor
