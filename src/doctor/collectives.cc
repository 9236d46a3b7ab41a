#include "doctor/collectives.h"

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "tensor/arena.h"

namespace tokamak::doctor {

namespace {

constexpr int64_t kElements = 4096;  // of a slice whose values are tested
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr int64_t kHostBytes = int64_t{32} << 20, kGpuBytes = int64_t{256} << 20;
constexpr int64_t kMostRepeats = 20;
constexpr int64_t kMultiple = 64;  // elements; then any dtype's slice is aligned (Comm::kSliceAlignment)

// Whole numbers below 61: exact in bf16, and so are their sums in f32 for any number of ranks.
float value_at(int64_t i, int rank) { return static_cast<float>((i * 7 + rank * 13) % 61); }

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

  // "" or what is wrong, with the element and the rank that sent it.
  std::string wrong_gather() {
    put<float>(slice_, [&](int64_t i) { return value_at(i, data_.rank()); });
    put<float>(full_, [](int64_t) { return -1.0F; });
    gather();
    const std::vector<float> found = get<float>(full_);
    for (int64_t i = 0; i < full_.count(); ++i) {
      const auto from = static_cast<int>(i / slice_count_);
      const float expected = value_at(i % slice_count_, from);
      const float got = found[static_cast<size_t>(i)];
      if (got != expected) return str("element ", i, ", of rank ", from, ", is ", got, ", not ", expected);
    }
    return "";
  }

  std::string wrong_reduction() {
    put<float>(full_, [&](int64_t i) { return value_at(i, data_.rank()); });
    reduce();
    const std::vector<float> found = get<float>(slice_);
    for (int64_t i = 0; i < slice_count_; ++i) {
      const double expected = sum_at(data_.rank() * slice_count_ + i, data_.size());
      if (found[static_cast<size_t>(i)] != expected) return wrong_sum(i, found[static_cast<size_t>(i)], expected);
    }
    return "";
  }

  std::string wrong_sums() {
    put<double>(few_, [&](int64_t i) { return static_cast<double>(value_at(i, data_.rank())); });
    data_.all_reduce(*stream_, few_);
    const std::vector<double> found = get<double>(few_);
    for (int64_t i = 0; i < kFew; ++i) {
      const double expected = sum_at(i, data_.size());
      if (found[static_cast<size_t>(i)] != expected) return wrong_sum(i, found[static_cast<size_t>(i)], expected);
    }
    return "";
  }

  void gather() { data_.all_gather(*stream_, slice_, full_); }
  void reduce() {
    data_.reduce_scatter(*stream_, {.full = full_, .slice = slice_, .dtype = reduce_, .scratch = scratch_});
  }
  void wait() { stream_->synchronize(); }
  // That each rank sends in a gather, or in a reduction of f32.
  double exchanged() const { return static_cast<double>(slice_.bytes() * (data_.size() - 1)); }
  double reduced() const { return static_cast<double>(slice_count_ * size_of(reduce_) * (data_.size() - 1)); }

 private:
  static constexpr int64_t kFew = 8;

  static std::string wrong_sum(int64_t i, double found, double expected) {
    return str("sum ", i, " is ", found, ", not ", expected);
  }

  template <class T, class Value>
  void put(Tensor tensor, const Value& value) {
    std::vector<T> host;
    host.reserve(static_cast<size_t>(tensor.count()));
    for (int64_t i = 0; i < tensor.count(); ++i) host.push_back(value(i));
    device_.copy_to_device(*stream_, host.data(), tensor);
  }

  template <class T>
  std::vector<T> get(Tensor tensor) {
    std::vector<T> host(static_cast<size_t>(tensor.count()));
    device_.copy_to_host(*stream_, tensor, host.data());
    stream_->synchronize();
    return host;
  }

  Comm& data_;
  Device& device_;
  DType reduce_;
  int64_t slice_count_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor full_, slice_, scratch_, few_;
};

// Seconds of one of several, as many as fit into `budget`: the slowest rank's time, so that all repeat alike.
double seconds_of(Comm& control, Collectives& collectives, double budget, const std::function<void()>& work) {
  const auto timed = [&](int64_t times) {
    control.barrier();
    const Stopwatch watch;
    for (int64_t i = 0; i < times; ++i) work();
    collectives.wait();
    const auto nanoseconds = static_cast<int64_t>(1e9 * watch.seconds() / static_cast<double>(times));
    return 1e-9 * static_cast<double>(std::max<int64_t>(control.max(nanoseconds), 1));
  };
  const double first = timed(1);  // connections are made
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
  std::string gather, reduction, sums;
  {
    Collectives exact(data, device, options.reduce, kElements);
    gather = exact.wrong_gather();
    reduction = exact.wrong_reduction();
    sums = exact.wrong_sums();
  }
  result.ranks = gather_facts(control, [&] {
    Facts facts;
    facts.set("all_gather", gather.empty() ? "right" : gather);
    facts.set("reduce_scatter", reduction.empty() ? "right" : reduction);
    facts.set("all_reduce", sums.empty() ? "right" : sums);
    return facts;
  });
  for (const char* const name : {"all_gather", "reduce_scatter", "all_reduce"}) {
    const auto wrong = [&](int rank) { return result.ranks[static_cast<size_t>(rank)].text(name) != "right"; };
    bool everywhere = true;
    for (int rank = 0; rank < peers.size(); ++rank) everywhere = everywhere && wrong(rank);
    for (int rank = 0; rank < peers.size(); ++rank) {
      if (!wrong(rank)) continue;
      result.fail(everywhere && peers.hosts().size() > 1 ? "" : peers.host(rank),
                  str(name, " gives a wrong result on ", peers.name(rank), ": ",
                      result.ranks[static_cast<size_t>(rank)].text(name)));
    }
  }
  const int64_t most = options.most_bytes > 0 ? options.most_bytes : device.uses_host_memory() ? kHostBytes : kGpuBytes;
  std::vector<std::string> rates;
  for (const int64_t bytes : {std::min(kSmallBytes, most), most}) {
    Collectives timed(data, device, options.reduce, slice_for(bytes, data.size()));
    const double gather_rate =
        timed.exchanged() / seconds_of(control, timed, options.seconds / 4, [&] { timed.gather(); });
    const double reduce_rate =
        timed.reduced() / seconds_of(control, timed, options.seconds / 4, [&] { timed.reduce(); });
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
