#include "doctor/disk.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"

namespace tokamak::doctor {

namespace {

constexpr Kind kKind = Kind::kCheckpoint;
constexpr double kSlowDisk = 0.25;  // of the median host's rate
constexpr int64_t kLeastOfARank = int64_t{4} << 20;

std::string nearest_parent(std::string path) {
  while (!exists(path) && parent_directory(path) != path) path = parent_directory(path);
  return path;
}

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

// Removed with everything in it, whatever happens; rank 0's.
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
  std::vector<double> rates;
  double sum = 0;
  for (const Facts& facts : result.ranks) rates.push_back(facts.number("write_bytes_per_second"));
  for (const double rate : rates) sum += rate;
  const double common = median(rates);
  for (const std::string& host : peers.hosts()) {
    std::vector<double> own;
    for (const int rank : peers.ranks_of(host)) own.push_back(rates[static_cast<size_t>(rank)]);
    if (peers.hosts().size() > 1 && median(own) < kSlowDisk * common) {
      result.warn(host, str(host, " writes ", rate_text(median(own)), " a rank, the median rank ", rate_text(common)));
    }
  }
  const Facts& first = result.ranks.front();
  result.value += str(", write ", rate_text(sum), " with fsync (", fixed(first.number("fsync_seconds") * 1000, 1),
                      " ms for 4 KiB), read ", rate_text(first.number("read_bytes_per_second") * peers.size()));
  for (const Facts& facts : result.ranks) {
    if (facts.number("finished") != 0) continue;
    result.warn("",
                str("the disk is slow: only ", human_bytes(facts.number("written_bytes")), " were written in time"));
    break;
  }
}

void judge_space(CheckResult& result, const DiskOptions& options) {
  const Facts& first = result.ranks.front();
  const double free = first.number("free_bytes");
  result.value = str(human_bytes(free), " free");
  if (options.checkpoint_bytes == 0) return;
  const double needed = first.number("needed_bytes");
  if (free >= needed) return;
  result.fail("", str(options.directory, " has ", human_bytes(free), " free, and the run needs ", human_bytes(needed),
                      ": ", options.keep, " checkpoint(s) of ", human_bytes(options.checkpoint_bytes),
                      " and a fifth more; free space, lower checkpoint.keep_latest, or another run.output_dir"));
}

}  // namespace

int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes) {
  const auto with_reserve = [](int64_t bytes) { return bytes + bytes / 5; };
  const int64_t all = with_reserve(checkpoint_bytes * std::max<int64_t>(keep, 1));
  return std::max(all - held_bytes, with_reserve(checkpoint_bytes));
}

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options) {
  CheckResult result{.name = "disk", .kind = kKind};
  const bool lead = comm.rank() == 0;
  ProbeDirectory probe;
  const std::string token = hex64(std::random_device{}());

  // Rank 0: the directory, its space, rename and locks.
  std::vector<Facts> all = gather_facts(comm, [&] {
    Facts facts;
    if (!lead) return facts;
    const std::string parent = nearest_parent(options.directory);
    probe.make(parent);
    facts.set("exists", int64_t{exists(options.directory)});
    const int64_t free = options.free_bytes ? options.free_bytes(parent) : free_bytes(parent, kKind);
    const int64_t held = options.checkpoint_bytes > 0 ? bytes_below(options.directory + "/checkpoints") : 0;
    facts.set("free_bytes", free);
    facts.set("needed_bytes", needed_bytes(options.checkpoint_bytes, options.keep, held));
    facts.set("wrong_with_rename", wrong_with_rename(probe.path()));
    facts.set("wrong_with_lock", wrong_with_lock(probe.path()));
    write_text_atomically(probe.path() + "/token", token, kKind);
    facts.set("probe", probe.path());
    facts.set("token", token);
    return facts;
  });
  result.ranks = all;
  if (report_errors(result, peers)) {
    result.value = options.directory;
    for (Note& note : result.notes) note.host.clear();  // the directory's fault
    return result;
  }
  const Facts lead_facts = all.front();
  const std::string path = lead_facts.text("probe");
  judge_space(result, options);
  if (const std::string wrong = lead_facts.text("wrong_with_rename"); !wrong.empty()) result.fail("", wrong);
  if (const std::string wrong = lead_facts.text("wrong_with_lock"); !wrong.empty()) {
    result.warn("", wrong + "; a second run on this directory would not be noticed at its start");
  }

  // All ranks see what rank 0 has written, and, one of each host, its lock.
  std::optional<HeldLock> held;
  if (lead) held.emplace(path + "/lock");
  comm.barrier();
  const std::vector<int> first_ranks = peers.first_ranks();
  const bool tries_lock = !lead && std::count(first_ranks.begin(), first_ranks.end(), comm.rank()) > 0;
  all = gather_facts(comm, [&] {
    Facts facts;
    const bool same = appears(path + "/token", options.seconds_to_appear) &&
                      read_text(path + "/token", kKind) == lead_facts.text("token");
    facts.set("same_directory", int64_t{same});
    if (tries_lock && same) facts.set("sees_lock", int64_t{!HeldLock(path + "/lock").held()});
    return facts;
  });
  for (int rank = 0; rank < peers.size(); ++rank) {
    const Facts& facts = all[static_cast<size_t>(rank)];
    for (const auto& [name, value] : facts.all()) result.ranks[static_cast<size_t>(rank)].set(name, value);
    if (!facts.has(kError) && facts.number("same_directory") == 0) {
      result.fail(peers.host(rank), str(peers.name(rank), " does not see what rank 0 writes below ", options.directory,
                                        ": it must be one directory, shared by all hosts"));
    }
    if (facts.has("sees_lock") && facts.number("sees_lock") == 0) {
      result.warn(peers.host(rank), str(peers.host(rank), " can lock what rank 0 has locked: a second run from there ",
                                        "would not be noticed at its start"));
    }
  }
  if (report_errors(result, peers) || result.status == Status::kFail) return result;

  // All at once, as they save.
  DiskRateOptions share = options.rate;
  share.bytes = std::max(options.rate.bytes / peers.size(), std::min(kLeastOfARank, options.rate.bytes));
  if (static_cast<double>(share.bytes * peers.size() * 2) > lead_facts.number("free_bytes")) {
    result.warn("", str("rates were not measured: too little is free to write ", human_bytes(share.bytes), " a rank"));
    return result;
  }
  comm.barrier();
  all = gather_facts(comm, [&] {
    const DiskRate rate = measure_disk(path, share);
    Facts facts;
    facts.set("write_bytes_per_second", rate.write_rate);
    facts.set("read_bytes_per_second", rate.read_rate);
    facts.set("fsync_seconds", rate.fsync_seconds);
    facts.set("written_bytes", rate.bytes);
    facts.set("finished", int64_t{rate.finished});
    return facts;
  });
  for (size_t rank = 0; rank < all.size(); ++rank) {
    for (const auto& [name, value] : all[rank].all()) result.ranks[rank].set(name, value);
  }
  if (!report_errors(result, peers)) judge_rates(result, peers);
  return result;
}

}  // namespace tokamak::doctor
