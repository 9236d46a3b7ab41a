// Checks the directory of the checkpoints: that all hosts see the same one, its free space, renames and locks. Measures
// its write and read rates. The check works in a directory of its own, which it removes.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/median.h"
#include "base/process.h"
#include "base/run_files.h"
#include "base/strings.h"
#include "doctor/checks.h"

namespace tokamak::doctor {

namespace {

constexpr Kind kKind = Kind::kCheckpoint;
constexpr double kSlowDisk = 0.25;  // of the median host's rate
constexpr int64_t kFirstPiece = int64_t{1} << 20, kBlock = 4096;
constexpr int64_t kLeastOfARank = int64_t{4} << 20;

int64_t bytes_below(const std::string& directory) {
  int64_t bytes = 0;
  std::error_code none;
  for (std::filesystem::recursive_directory_iterator at(directory, none), end; !none && at != end; at.increment(none)) {
    std::error_code vanished;
    if (at->is_regular_file(vanished)) bytes += static_cast<int64_t>(at->file_size(vanished));
  }
  return bytes;
}

bool appears(const std::string& path, double seconds) {
  const Stopwatch watch;
  while (!exists(path)) {
    if (watch.seconds() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

// A directory that rank 0 makes. The destructor removes it with its contents.
class ProbeDirectory {
 public:
  void make(const std::string& parent) {
    const std::string path = str(parent, "/.doctor-", process_name());
    make_directories(path, kKind);
    path_ = path;
  }
  ~ProbeDirectory() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string rate_text(double bytes_per_second) { return human_bytes(bytes_per_second) + "/s"; }

void judge_rates(CheckResult& result, const RankHosts& peers) {
  const std::vector<double> rates = result.numbers("write_bytes_per_second");
  const double common = median_of(rates);
  const std::vector<std::string> hosts = peers.hosts();
  for (const std::string& host : hosts) {
    std::vector<double> own;
    for (const int rank : peers.ranks_of(host)) own.push_back(rates[rank]);
    if (hosts.size() > 1 && median_of(own) < kSlowDisk * common) {
      result.warn(host,
                  str(host, " writes ", rate_text(median_of(own)), " a rank, the median rank ", rate_text(common)));
    }
  }
  const Facts& first = result.ranks.front();
  result.value += str(", write ", rate_text(std::accumulate(rates.begin(), rates.end(), 0.0)), " with fsync (",
                      fixed(first.number("fsync_seconds") * 1000, 1), " ms for 4 KiB), read ",
                      rate_text(first.number("read_bytes_per_second") * peers.size()));
  for (const Facts& facts : result.ranks) {
    if (facts.number("finished") != 0) continue;
    return result.warn(
        "", str("the disk is slow: only ", human_bytes(facts.number("written_bytes")), " were written in time"));
  }
}

void judge_space(CheckResult& result, const DiskOptions& options) {
  const double free = result.ranks.front().number("free_bytes"), needed = result.ranks.front().number("needed_bytes");
  result.value = str(human_bytes(free), " free");
  if (free >= needed) return;
  result.fail("", str(options.directory, " has ", human_bytes(free), " free, and the run needs ", human_bytes(needed),
                      ": ", options.keep, " checkpoint(s) of ", human_bytes(options.checkpoint_bytes),
                      " and a fifth more; free space, lower checkpoint.keep_latest, or another run.output_dir"));
}

// Every rank sees the lock that rank 0 holds at `path`, and one rank of each other host cannot take it.
bool check_shared(CheckResult& result, Comm& comm, const RankHosts& peers, const std::string& path,
                  const DiskOptions& options) {
  std::optional<HeldLock> held;
  if (comm.rank() == 0) held.emplace(path);
  comm.barrier();
  const bool tries_lock = comm.rank() != 0 && peers.ranks_of(peers.host(comm.rank())).front() == comm.rank();
  const bool measured = measure(result, comm, peers, [&](Facts& facts) {
    const bool same = appears(path, options.seconds_to_appear);
    facts.set("same_directory", int{same});
    if (tries_lock && same) facts.set("sees_lock", int{!HeldLock(path).held()});
  });
  for (int rank = 0; rank < peers.size(); ++rank) {
    const Facts& facts = result.ranks[rank];
    if (facts.has("same_directory") && facts.number("same_directory") == 0) {
      result.fail(peers.host(rank), str(peers.name(rank), " does not see the files of rank 0 below ", options.directory,
                                        ": it must be one directory, shared by all hosts"));
    }
    if (facts.has("sees_lock") && facts.number("sees_lock") == 0) {
      result.warn(peers.host(rank),
                  str(peers.host(rank), " can lock a file that rank 0 has locked: a start there would ",
                      "not notice that another run uses the directory"));
    }
  }
  return measured && result.status != Status::kFail;
}

}  // namespace

std::string nearest_parent(std::string path) {
  while (!exists(path) && parent_directory(path) != path) path = parent_directory(path);
  return path;
}

std::string wrong_with_rename(const std::string& directory) {
  const std::string first = directory + "/first", second = directory + "/second";
  write_text_atomically(first, "old", kKind);
  write_text_atomically(second, "new", kKind);
  rename_path(second, first, kKind);
  if (exists(second)) return "a renamed file still has its old name";
  if (read_text(first, kKind) != "new") return "a file renamed over another one has not replaced it";

  const std::string step = directory + "/step", committed = directory + "/committed";
  make_directories(step, kKind);
  write_text_atomically(step + "/manifest", "whole", kKind);
  rename_path(step, committed, kKind);
  sync_directory(directory, kKind);
  if (exists(step) || !exists(committed + "/manifest")) return "a directory cannot be renamed as a whole";
  make_directories(step, kKind);
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
  OutputFile file(path, kKind);
  const InputFile written(path, kKind);
  remove_file(path, kKind);

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
    if (bytes < largest) continue;  // a short last piece: most of its time is that of fsync
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

int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes) {
  const auto with_reserve = [](int64_t bytes) { return bytes + bytes / 5; };
  const int64_t all = with_reserve(checkpoint_bytes * std::max<int64_t>(keep, 1));
  return std::max(all - held_bytes, with_reserve(checkpoint_bytes));
}

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options) {
  CheckResult result{.name = "disk", .kind = kKind, .value = options.directory};
  ProbeDirectory probe;
  const bool usable = measure(result, comm, peers, [&](Facts& facts) {
    if (comm.rank() != 0) return;
    const std::string parent = nearest_parent(options.directory);
    probe.make(parent);
    const int64_t held =
        options.checkpoint_bytes > 0 ? bytes_below(run_files::at(options.directory, run_files::kCheckpoints)) : 0;
    facts.set("probe", probe.path());
    facts.set("free_bytes", options.free_bytes ? options.free_bytes(parent) : free_bytes(parent, kKind));
    facts.set("needed_bytes",
              options.checkpoint_bytes > 0 ? needed_bytes(options.checkpoint_bytes, options.keep, held) : 0);
    facts.set("wrong_with_rename", wrong_with_rename(probe.path()));
    facts.set("wrong_with_lock", wrong_with_lock(probe.path()));
  });
  if (!usable) {
    for (Note& note : result.notes) note.host.clear();  // no host is at fault, but the directory
    return result;
  }
  const Facts lead = result.ranks.front();
  judge_space(result, options);
  if (const std::string wrong = lead.text("wrong_with_rename"); !wrong.empty()) result.fail("", wrong);
  if (const std::string wrong = lead.text("wrong_with_lock"); !wrong.empty()) {
    result.warn("", wrong + "; a start would not notice that another run uses the directory");
  }
  if (!check_shared(result, comm, peers, lead.text("probe") + "/lock", options)) return result;

  // All ranks write at once, as in a save.
  DiskRateOptions share = options.rate;
  share.bytes = std::max(options.rate.bytes / peers.size(), std::min(kLeastOfARank, options.rate.bytes));
  if (static_cast<double>(share.bytes * peers.size() * 2) > lead.number("free_bytes")) {
    result.warn("", str("rates were not measured: too little is free to write ", human_bytes(share.bytes), " a rank"));
    return result;
  }
  const bool measured = measure(result, comm, peers, [&](Facts& facts) {
    const DiskRate rate = measure_disk(str(lead.text("probe"), "/rate-", comm.rank()), share);
    facts.set("write_bytes_per_second", rate.write_rate);
    facts.set("read_bytes_per_second", rate.read_rate);
    facts.set("fsync_seconds", rate.fsync_seconds);
    facts.set("written_bytes", rate.bytes);
    facts.set("finished", int{rate.finished});
  });
  if (measured) judge_rates(result, peers);
  return result;
}

}  // namespace tokamak::doctor
