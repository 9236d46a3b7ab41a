// The collectives of a training step: results for numbers whose sums are exact, and bandwidths at two sizes.
#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "base/strings.h"
#include "doctor/checks.h"
#include "tensor/arena.h"

namespace tokamak::doctor {

namespace {

constexpr int64_t kElements = 4096;  // of a slice whose values are tested
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr int64_t kHostBytes = int64_t{32} << 20, kGpuBytes = int64_t{256} << 20;
constexpr int64_t kMostRepeats = 20;
constexpr const char* kRight = "right";
constexpr int64_t kMultiple = 64;  // elements; then any dtype's slice is aligned (Comm::kSliceAlignment)

// Whole numbers below 61: exact in bf16, and so are their sums in f32 for any number of ranks.
double value_at(int64_t i, int64_t rank) { return static_cast<double>((i * 7 + rank * 13) % 61); }

double sum_at(int64_t i, int ranks) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_at(i, rank);
  return sum;
}

class Collectives {
 public:
  Collectives(Comm& data, Device& device, DType reduce, int64_t slice)
      : data_(data), device_(device), reduce_(reduce), slice_count_(slice), stream_(device.make_stream()) {
    MemoryPlan plan;
    const auto full = plan.add("collectives/full", DType::kF32, Shape{slice * data.size()}, MemoryKind::kExchanged);
    const auto part = plan.add("collectives/slice", DType::kF32, Shape{slice}, MemoryKind::kExchanged);
    const int64_t elements = std::max<int64_t>(data.scratch_elements(slice, reduce), 1);
    const auto scratch = plan.add("collectives/scratch", reduce, Shape{elements}, MemoryKind::kExchanged);
    const auto few = plan.add("collectives/few", DType::kF64, Shape{kFew}, MemoryKind::kExchanged);
    arena_ = std::make_unique<Arena>(plan, device);
    full_ = (*arena_)[full];
    slice_ = (*arena_)[part];
    scratch_ = (*arena_)[scratch];
    few_ = (*arena_)[few];
    data_.register_memory();
  }

  // "" or the first wrong element.
  std::string wrong_gather() {
    put<float>(slice_, data_.rank());
    gather();
    return first_wrong<float>(full_, [&](int64_t i) { return value_at(i % slice_count_, i / slice_count_); });
  }
  std::string wrong_reduction() {
    put<float>(full_, data_.rank());
    reduce();
    return first_wrong<float>(slice_, [&](int64_t i) { return sum_at(data_.rank() * slice_count_ + i, data_.size()); });
  }
  std::string wrong_sums() {
    put<double>(few_, data_.rank());
    data_.all_reduce(*stream_, few_);
    return first_wrong<double>(few_, [&](int64_t i) { return sum_at(i, data_.size()); });
  }

  void gather() { data_.all_gather(*stream_, slice_, full_); }
  void reduce() {
    data_.reduce_scatter(*stream_, {.full = full_, .slice = slice_, .dtype = reduce_, .scratch = scratch_});
  }
  void wait() { stream_->synchronize(); }
  // Bytes that each rank sends in a gather and in a reduction.
  double exchanged() const { return static_cast<double>(slice_.bytes() * (data_.size() - 1)); }
  double reduced() const { return static_cast<double>(slice_count_ * size_of(reduce_) * (data_.size() - 1)); }

 private:
  static constexpr int64_t kFew = 8;

  template <class T>
  void put(Tensor tensor, int rank) {
    std::vector<T> host;
    for (int64_t i = 0; i < tensor.count(); ++i) host.push_back(static_cast<T>(value_at(i, rank)));
    device_.copy_to_device(*stream_, host.data(), tensor);
  }

  template <class T>
  std::string first_wrong(Tensor tensor, const std::function<double(int64_t)>& expected) {
    std::vector<T> found(static_cast<size_t>(tensor.count()));
    device_.copy_to_host(*stream_, tensor, found.data());
    stream_->synchronize();
    for (int64_t i = 0; i < tensor.count(); ++i) {
      if (found[i] == expected(i)) continue;
      const std::string sender = tensor.count() == full_.count() ? str(", of rank ", i / slice_count_, ",") : "";
      return str("element ", i, sender, " is ", found[i], ", not ", expected(i));
    }
    return "";
  }

  Comm& data_;
  Device& device_;
  DType reduce_;
  int64_t slice_count_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor full_, slice_, scratch_, few_;
};

// Seconds of one repetition, from as many repetitions as fit into `budget`. All ranks use the slowest rank's time, so
// all repeat equally often.
double seconds_of(Comm& control, Collectives& collectives, double budget, const std::function<void()>& work) {
  const auto timed = [&](int64_t times) {
    control.barrier();
    const Stopwatch watch;
    for (int64_t i = 0; i < times; ++i) work();
    collectives.wait();
    const auto nanoseconds = static_cast<int64_t>(1e9 * watch.seconds() / static_cast<double>(times));
    return 1e-9 * static_cast<double>(std::max<int64_t>(control.max(nanoseconds), 1));
  };
  const double first = timed(1);  // the first call makes the connections
  if (first > budget / 2) return first;
  const double once = timed(1);
  const auto times = static_cast<int64_t>(std::min<double>(kMostRepeats, (budget - first) / once));
  return times < 2 ? once : timed(times);
}

int64_t slice_for(int64_t bytes, int ranks) {
  return std::max<int64_t>(bytes / size_of(DType::kF32) / ranks / kMultiple, 1) * kMultiple;
}

}  // namespace

CheckResult check_collectives(Comm& control, Comm& data, const RankHosts& peers, Device& device,
                              const CollectivesOptions& options) {
  CheckResult result{.name = "collectives", .kind = Kind::kComm};
  std::vector<std::pair<std::string, std::string>> wrong;
  {
    Collectives exact(data, device, options.reduce, kElements);
    wrong = {{"all_gather", exact.wrong_gather()},
             {"reduce_scatter", exact.wrong_reduction()},
             {"all_reduce", exact.wrong_sums()}};
  }
  measure(result, control, peers, [&](Facts& facts) {
    for (const auto& [name, found] : wrong) facts.set(name, found.empty() ? std::string(kRight) : found);
  });
  for (const auto& [name, own] : wrong) {
    std::vector<int> ranks;
    for (int rank = 0; rank < peers.size(); ++rank) {
      if (result.ranks[rank].text(name) != kRight) ranks.push_back(rank);
    }
    const bool everywhere = static_cast<int>(ranks.size()) == peers.size() && peers.hosts().size() > 1;
    for (const int rank : ranks) {
      result.fail(everywhere ? "" : peers.host(rank),
                  str(name, " gives a wrong result on ", peers.name(rank), ": ", result.ranks[rank].text(name)));
    }
  }
  const int64_t most = options.most_bytes > 0 ? options.most_bytes : device.uses_host_memory() ? kHostBytes : kGpuBytes;
  std::vector<std::string> rates;
  for (const int64_t bytes : {std::min(kSmallBytes, most), most}) {
    Collectives timed(data, device, options.reduce, slice_for(bytes, data.size()));
    const double budget = options.seconds / 4;
    const double gather_rate = timed.exchanged() / seconds_of(control, timed, budget, [&] { timed.gather(); });
    const double reduce_rate = timed.reduced() / seconds_of(control, timed, budget, [&] { timed.reduce(); });
    for (Facts& facts : result.ranks) {
      facts.set(str("all_gather_bytes_per_second_of_", bytes), gather_rate);
      facts.set(str("reduce_scatter_bytes_per_second_of_", bytes), reduce_rate);
    }
    rates.push_back(str(human_bytes(gather_rate), "/s and ", human_bytes(reduce_rate), "/s at ", human_bytes(bytes)));
  }
  result.value =
      str(result.status == Status::kFail ? "wrong; " : "right; ", "all_gather and reduce_scatter ", join(rates, ", "));
  return result;
}

}  // namespace tokamak::doctor
