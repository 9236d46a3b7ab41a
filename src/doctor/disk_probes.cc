#include "doctor/disk_probes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace tokamak::doctor {

namespace {

constexpr Kind kProbeKind = Kind::kCheckpoint;
constexpr int64_t kFirstPiece = int64_t{1} << 20;
constexpr int64_t kBlock = 4096;

}  // namespace

std::string wrong_with_rename(const std::string& directory) {
  const std::string first = directory + "/first", second = directory + "/second";
  write_text_atomically(first, "old", kProbeKind);
  write_text_atomically(second, "new", kProbeKind);
  rename_path(second, first, kProbeKind);
  if (exists(second)) return "a renamed file still has its old name";
  if (read_text(first, kProbeKind) != "new") return "a file renamed over another one has not replaced it";

  const std::string step = directory + "/step", committed = directory + "/committed";
  make_directories(step, kProbeKind);
  write_text_atomically(step + "/manifest", "whole", kProbeKind);
  rename_path(step, committed, kProbeKind);
  sync_directory(directory, kProbeKind);
  if (exists(step) || !exists(committed + "/manifest")) return "a directory cannot be renamed as a whole";
  make_directories(step, kProbeKind);
  if (std::rename(step.c_str(), committed.c_str()) == 0) return "a directory can be renamed over one that is not empty";
  return "";
}

std::string wrong_with_lock(const std::string& directory) {
  const std::string path = directory + "/two_locks";
  {
    const HeldLock first(path);
    if (!first.held()) return "flock does not work";
    if (HeldLock(path).held()) return "flock gives the same file to two descriptors";
  }
  return HeldLock(path).held() ? "" : "flock does not give a file that was unlocked";
}

HeldLock::HeldLock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  held_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
}

HeldLock::~HeldLock() {
  if (fd_ >= 0) ::close(fd_);
}

DiskRate measure_disk(const std::string& path, const DiskRateOptions& options) {
  OutputFile file(path, kProbeKind);
  const InputFile written(path, kProbeKind);
  remove_file(path, kProbeKind);

  // Not constant, because some file systems compress.
  std::vector<std::byte> data(static_cast<size_t>(std::max(options.bytes / 2, kFirstPiece)));
  uint32_t state = 1;
  for (std::byte& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  const auto write = [&](int64_t bytes) {
    const Stopwatch watch;
    file.write(std::span(data).first(static_cast<size_t>(bytes)));
    file.sync();
    return watch.seconds();
  };

  DiskRate rate{.fsync_seconds = write(kBlock)};
  const Stopwatch watch;
  int64_t largest = 0;
  for (int64_t piece = kFirstPiece; file.size() < options.bytes && watch.seconds() < options.seconds; piece *= 2) {
    const int64_t bytes = std::min({piece, options.bytes - file.size(), static_cast<int64_t>(data.size())});
    const double seconds = write(bytes);
    if (bytes < largest) continue;  // a short last piece, of which fsync takes too large a share
    largest = bytes;
    rate.write_rate = static_cast<double>(bytes) / seconds;
  }
  rate.bytes = file.size();
  rate.finished = rate.bytes >= options.bytes;

  written.drop_cache();
  const Stopwatch read_watch;
  int64_t at = 0;
  while (at < rate.bytes && read_watch.seconds() < options.seconds) {
    const int64_t bytes = std::min(kFirstPiece, rate.bytes - at);
    written.read_at(at, std::span(data).first(static_cast<size_t>(bytes)));
    at += bytes;
  }
  rate.read_rate = static_cast<double>(at) / read_watch.seconds();
  return rate;
}

}  // namespace tokamak::doctor
