// The checks of the doctor. The banner of each .cc file says what its check finds. All checks are collective.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "comm/world.h"
#include "doctor/check.h"
#include "train/run_config.h"

namespace tokamak::doctor {

// `read` returns the resolved config as text. Its Error is this rank's finding.
CheckResult check_config(Comm& comm, const RankHosts& peers, const std::function<std::string()>& read);

// Replaces text among the sources by the data sets that earlier runs made of it. Takes out and returns text without
// one, and removes the limits of epochs, which hold for the whole mixture. Error(kData) and Error(kConfig) if the files
// or the tokenizer cannot be read.
std::vector<SourceOptions> take_out_text(RunConfig& config);

// Adds what the data sets of this text will take, by a sample that rank 0 tokenizes. Fails if the cache has less free
// space. `free_bytes`: empty asks the file system.
void judge_text(CheckResult& result, Comm& comm, const RankHosts& peers, const RunConfig& config,
                const std::vector<SourceOptions>& text,
                const std::function<int64_t(const std::string& path)>& free_bytes = {});

std::string nearest_parent(std::string path);  // the path itself or the nearest directory above it that exists

// Version and hash of this process's binary, and the libraries whose version matters by file name and size.
Facts program_facts(const std::string& version);
CheckResult check_program(Comm& comm, const RankHosts& peers, const Facts& own);

// `clock` returns seconds since 1970.
CheckResult check_clocks(Comm& comm, const RankHosts& peers, const std::function<double()>& clock);

using Variables = std::function<const char*(const char* name)>;  // looks up one variable, like std::getenv

// The facts that the rules depend on.
struct Surroundings {
  int ranks = 1;
  int hosts = 1;
  int ranks_on_cores = 1;  // ranks that share this rank's cores, this one included
  int ranks_on_host = 1;
  int threads = 1;     // of this rank
  int cores = 1;       // in this rank's affinity mask
  int host_cores = 1;  // online
  bool on_gpu = false;
  std::string system = "/";  // the directory of proc/ and sys/
};

// Return one line for each setting that hurts, with its effect and remedy.
std::vector<std::string> hurtful_variables(const Variables& variables, const Surroundings& here);
std::vector<std::string> hurtful_settings(const Surroundings& here);
std::vector<std::string> gpu_libraries(const std::vector<std::string>& paths);  // the libraries of NVIDIA among `paths`
CheckResult check_environment(Comm& comm, const RankHosts& peers, const Variables& variables, const Surroundings& here);

// `data`: the data group. Without `data` or `config` the check makes no memory plan.
CheckResult check_memory(World& world, const RankHosts& peers, Backend& backend, Comm* data,
                         const std::optional<RunConfig>& config);

struct DiskRateOptions {
  int64_t bytes = int64_t{64} << 20;
  double seconds = 4;
};

struct DiskOptions {
  std::string directory;  // the run's, with checkpoints/ in it; if it does not exist, its nearest parent is tried
  int64_t checkpoint_bytes = 0;                                // of one checkpoint; 0: unknown
  int64_t keep = 2;                                            // how many checkpoints the run keeps
  double seconds_to_appear = 3;                                // how long a new file may stay unseen on other hosts
  DiskRateOptions rate;                                        // for all ranks together: each writes its share
  std::function<int64_t(const std::string& path)> free_bytes;  // empty: asks the file system
};

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options);

// Free space that a run needs: its checkpoints and a fifth more, minus the `held_bytes` of checkpoints on disk. It is
// at least one checkpoint, since a new one is committed before an old one is deleted.
int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes);

// Renames a file over another and a directory to a new name; a directory must not replace one that is not empty. The
// commit of a checkpoint (checkpoint/commit.h) needs all three. Returns the defect, or "".
std::string wrong_with_rename(const std::string& directory);

// flock must keep a second descriptor out until the first is closed (checkpoint/lock.h). Returns the defect, or "".
std::string wrong_with_lock(const std::string& directory);

// A lock on `path` for the lifetime of this object.
class HeldLock {
 public:
  explicit HeldLock(const std::string& path);  // creates the file
  ~HeldLock();
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// measure_disk writes pieces that double in size, each with fsync, for `bytes` or `seconds`. Then it reads them back,
// past the page cache if the kernel allows it. Removes the name `path` before it writes, so a killed process leaves
// nothing. Error(kCheckpoint) if a call fails.
struct DiskRate {
  int64_t bytes = 0;         // written in all
  bool finished = false;     // all of the requested bytes
  double fsync_seconds = 0;  // for 4 KiB
  double write_rate = 0;     // bytes per second with fsync, of the largest piece
  double read_rate = 0;      // bytes per second
};
DiskRate measure_disk(const std::string& path, const DiskRateOptions& options);

struct BurnInOptions {
  double seconds = 3;
  DType dtype = DType::kBF16;
  int64_t most = 0;  // rows of the largest matrix; 0: chosen for the kind of device
};
CheckResult check_burn_in(Comm& comm, const RankHosts& peers, Backend& backend, const BurnInOptions& options);

// Judges the facts device, bits, rounds_of_other_bits, flops_per_second and share_of_cores.
void judge_burn_in(CheckResult& result, const RankHosts& peers);

// Bits of throttle_reasons: nvmlClocksEventReason*, formerly nvmlClocksThrottleReason*.
inline constexpr int64_t kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                         kPowerBrake = 0x80;

// Asks NVIDIA's management library, which it opens at run time if a driver has installed it. The fact `gpus` is the
// number of GPUs, `driver` the version; `missing` says why there is no GPU. GPU i has gpu<i>.name, gpu<i>.bus, ...;
// facts that GPU or driver do not report are missing.
Facts ask_nvml();

// Calls `ask` on the first rank of each host.
CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<Facts()>& ask);

struct CollectivesOptions {
  DType reduce = DType::kF32;  // the communication dtype of gradients
  int64_t most_bytes = 0;      // of the larger size; 0: chosen for the kind of device
  double seconds = 4;          // for all measurements
};

// `control` gathers the findings; `data` is tested.
CheckResult check_collectives(Comm& control, Comm& data, const RankHosts& peers, Device& device,
                              const CollectivesOptions& options);

struct PairsOptions {
  int64_t bytes = 0;    // in each direction; 0: chosen for the kind of device
  double seconds = 10;  // no new round begins after that time
};
CheckResult check_pairs(Comm& control, Comm& data, const RankHosts& peers, Device& device, const PairsOptions& options);

struct PairTime {
  int a = 0, b = 0;             // ranks
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // in each direction
};

// Names the slowest pairs, and a host that is part of most of them.
void judge_pairs(CheckResult& result, const RankHosts& peers, std::vector<PairTime> pairs);

// The opponent of `player` in `round` of a tournament of `players`; returns `player` if it has none in this round.
int opponent(int player, int round, int players);

}  // namespace tokamak::doctor
