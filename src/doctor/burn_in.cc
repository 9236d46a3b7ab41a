// Runs the same GEMMs on every rank for a few seconds. They find a device that is slower than equal devices, or
// computes other bits than they do, always or from time to time. (Llama 3, arXiv 2407.21783, table 5; silent data
// corruption: Dixit et al. 2021, arXiv 2102.11245.)
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/hash.h"
#include "base/median.h"
#include "base/parallel_for.h"
#include "base/strings.h"
#include "doctor/checks.h"
#include "tensor/arena.h"

namespace tokamak::doctor {

namespace {

constexpr double kFailBelow = 0.7, kWarnBelow = 0.9;  // share of the median rate of the other ranks
constexpr double kRoundSeconds = 0.1;
constexpr size_t kFewestRounds = 3;    // at least so many rounds of GEMMs, however long they take
constexpr double kLongEnough = 0.005;  // seconds of one GEMM
constexpr double kCoresAreOurs = 0.9;  // share of the time that a rank's threads ran
constexpr int64_t kSmallest = 256;
constexpr uint64_t kSeed = 15;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// C = A B^T of random (n, n) matrices: the same values on every rank (base/rng.h).
class SquareGemm {
 public:
  SquareGemm(Backend& backend, DType dtype, int64_t n)
      : backend_(backend), n_(n), stream_(backend.device->make_stream()) {
    MemoryPlan plan;
    const auto random = plan.add("burn-in/random", DType::kF32, Shape{n, n});
    const auto a = plan.add("burn-in/a", dtype, Shape{n, n}), b = plan.add("burn-in/b", dtype, Shape{n, n});
    const auto c = plan.add("burn-in/c", dtype, Shape{n, n});
    const auto workspace = plan.add("burn-in/workspace", DType::kF32, Shape{backend.ops->workspace_bytes({}) / 4 + 1});
    arena_.emplace(plan, *backend.device);
    backend.ops->bind_workspace((*arena_)[workspace]);
    gemm_ = {.a = (*arena_)[a], .b = (*arena_)[b], .c = (*arena_)[c], .trans_b = Transpose::kYes};
    for (const auto& [name, tensor] : {std::pair("a", gemm_.a), std::pair("b", gemm_.b)}) {
      const Tensor values = (*arena_)[random];
      backend.ops->random_normal(*stream_, {.x = values.flat(), .seed = kSeed, .name = name});
      backend.ops->cast(*stream_, {.src = values.flat(), .dst = tensor.flat()});
    }
    stream_->synchronize();
  }
  ~SquareGemm() { backend_.ops->bind_workspace({}); }
  SquareGemm(const SquareGemm&) = delete;
  SquareGemm& operator=(const SquareGemm&) = delete;

  double flops() const { return 2 * std::pow(static_cast<double>(n_), 3); }

  double seconds(int64_t times) {
    const Stopwatch watch;
    for (int64_t i = 0; i < times; ++i) backend_.ops->gemm(*stream_, gemm_);
    stream_->synchronize();
    return watch.seconds();
  }

  uint64_t bits() {
    std::vector<std::byte> host(static_cast<size_t>(gemm_.c.bytes()));
    backend_.device->copy_to_host(*stream_, gemm_.c, host.data());
    stream_->synchronize();
    return xxh3_64(host);
  }

 private:
  Backend& backend_;
  int64_t n_;
  std::unique_ptr<Stream> stream_;
  std::optional<Arena> arena_;
  Gemm gemm_;
};

void burn(SquareGemm& gemm, double seconds, double once, Facts& facts) {
  const auto times = static_cast<int64_t>(std::max(1.0, std::ceil(kRoundSeconds / once)));
  std::vector<double> rates;
  uint64_t bits = 0;
  int64_t others = 0;
  const double processor = processor_seconds();
  const Stopwatch watch;
  do {
    rates.push_back(static_cast<double>(times) * gemm.flops() / gemm.seconds(times));
    const uint64_t now = gemm.bits();
    if (rates.size() == 1) bits = now;
    others += now == bits ? 0 : 1;
  } while (watch.seconds() < seconds || rates.size() < kFewestRounds);
  facts.set("bits", hex64(bits));
  facts.set("rounds", rates.size());
  facts.set("rounds_of_other_bits", others);
  facts.set("median_flops_per_second", median_of(rates));
  facts.set("best_flops_per_second", *std::max_element(rates.begin(), rates.end()));
  facts.set("share_of_cores",
            std::min(1.0, (processor_seconds() - processor) / (watch.seconds() * static_cast<double>(thread_count()))));
}

std::string flops_text(double flops_per_second) { return human_si(flops_per_second, "FLOP/s"); }

// The bits of the largest group of ranks are right. If two groups are the largest, the ranks of all groups fail.
void judge_bits(CheckResult& result, const RankHosts& peers, const std::vector<int>& equals) {
  std::map<std::string, std::vector<int>> by_bits;
  for (const int rank : equals) by_bits[result.ranks[rank].text("bits")].push_back(rank);
  size_t most = 0, largest_groups = 0;
  for (const auto& [bits, ranks] : by_bits) most = std::max(most, ranks.size());
  for (const auto& [bits, ranks] : by_bits) largest_groups += ranks.size() == most ? 1 : 0;
  for (const auto& [bits, ranks] : by_bits) {
    if (ranks.size() == most && largest_groups == 1) continue;
    for (const int rank : ranks) {
      result.fail(peers.host(rank),
                  str(peers.name(rank), " computes other bits (", bits, ") than ",
                      largest_groups == 1 ? "its equals" : "as many others, so that one of them is wrong",
                      ": its device or memory is faulty, or its libraries differ"));
    }
  }
}

void judge_flops(CheckResult& result, const RankHosts& peers, const std::vector<int>& equals) {
  const std::vector<double> rates = result.numbers("flops_per_second");
  for (const int rank : equals) {
    std::vector<double> others;
    for (const int other : equals) {
      if (other != rank) others.push_back(rates[other]);
    }
    const double share = others.empty() ? 1 : rates[rank] / median_of(others);
    if (share >= kWarnBelow) continue;
    const std::string text =
        str(peers.name(rank), " computes at ", fixed(100 * share, 0),
            " % of the others' rate: ", flops_text(rates[rank]), ", they ", flops_text(median_of(others)));
    const double share_of_cores = result.ranks[rank].number("share_of_cores");
    if (share_of_cores < kCoresAreOurs) {  // the rate then depends on the other processes
      result.warn(
          "", str(text, "; its threads ran ", fixed(100 * share_of_cores, 0),
                  " % of the time: other processes use its cores. End them and repeat, or every step waits for it"));
    } else if (share < kFailBelow) {
      result.fail(peers.host(rank), text + ": throttled, a faulty device, or other limits; every step waits for it");
    } else {
      result.warn(peers.host(rank), text + "; every step waits for it");
    }
  }
}

}  // namespace

void judge_burn_in(CheckResult& result, const RankHosts& peers) {
  std::map<std::string, std::vector<int>> by_device;
  for (int rank = 0; rank < peers.size(); ++rank) {
    const Facts& facts = result.ranks[rank];
    by_device[facts.text("device")].push_back(rank);
    if (facts.number("rounds_of_other_bits") == 0) continue;
    result.fail(peers.host(rank),
                str(peers.name(rank), ": the same GEMM gave other bits in ", facts.text("rounds_of_other_bits"), " of ",
                    facts.text("rounds"), " rounds: its device or memory is faulty"));
  }
  for (const auto& [device, ranks] : by_device) {
    judge_bits(result, peers, ranks);
    judge_flops(result, peers, ranks);
  }
  const std::vector<double> rates = result.numbers("flops_per_second");
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  result.value = str("GEMM of ", result.ranks.front().text("n"), ": ", flops_text(median_of(rates)), " a rank",
                     peers.size() > 1 ? str(" (", flops_text(*least), " to ", flops_text(*most), ")") : "");
}

CheckResult check_burn_in(Comm& comm, const RankHosts& peers, Backend& backend, const BurnInOptions& options) {
  CheckResult result{.name = "burn-in", .kind = Kind::kDevice};
  const bool host = backend.device->uses_host_memory();
  const int64_t most = options.most > 0 ? options.most : host ? 1024 : 8192;
  std::optional<SquareGemm> gemm;
  double once = 0;
  // The largest size whose GEMM is short on the slowest rank. All ranks take the same size, since bits are compared.
  int64_t n = std::min(kSmallest, most);
  for (;; n *= 2) {
    const bool ran = measure(result, comm, peers, [&](Facts& facts) {
      gemm.reset();
      gemm.emplace(backend, options.dtype, n);
      gemm->seconds(1);  // a first call, which loads kernels and chooses algorithms
      once = gemm->seconds(1);
      facts.set("once", once);
    });
    if (!ran) return result;
    const std::vector<double> all = result.numbers("once");
    if (2 * n > most || *std::max_element(all.begin(), all.end()) > kLongEnough) break;
  }
  comm.barrier();
  const bool ran = measure(result, comm, peers, [&](Facts& facts) {
    burn(*gemm, options.seconds, once, facts);
    facts.set("device", device_model(backend.device->description()));
    facts.set("n", n);
    // Other processes take cores for moments at a time; a GPU that throttles stays slow.
    facts.set("flops_per_second", facts.number(host ? "best_flops_per_second" : "median_flops_per_second"));
    if (!host) facts.set("share_of_cores", 1.0);
  });
  if (ran) judge_burn_in(result, peers);
  return result;
}

}  // namespace tokamak::doctor
