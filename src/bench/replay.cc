#include "bench/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/median.h"
#include "base/rng.h"

namespace tokamak {

namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kRandom = int64_t{1} << 22;  // values drawn, which fill() repeats
constexpr int64_t kMostCalls = 100;

int64_t most_elements(const Device& device) { return device.uses_host_memory() ? int64_t{1} << 23 : int64_t{1} << 27; }

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

Operands operands(OperationValue& call) {
  return std::visit(Overloaded{[](std::monostate) { return Operands(); }, [](auto& args) { return operands_of(args); }},
                    call);
}

void cut_flat_state(OperationValue& call, int64_t most) {
  auto* const adamw = std::get_if<AdamW>(&call);
  const bool flat = adamw || std::get_if<MuonMomentum>(&call) || std::get_if<MuonUpdate>(&call) ||
                    std::get_if<SumSquares>(&call) || std::get_if<Checksum>(&call) || std::get_if<Cast>(&call) ||
                    std::get_if<Average>(&call) || std::get_if<Fill>(&call);
  if (!flat) return;
  for (const Operand& operand : operands(call)) {
    if (operand.tensor->count() > most) *operand.tensor = operand.tensor->flat(0, most);
  }
  if (adamw != nullptr) adamw->groups = {{adamw->master.count(), 0.1}};
}

// Places operands in one block, those of the same address at one offset; returns the bytes of the block.
int64_t lay_out(OperationValue& call, const std::function<void(Tensor&, int64_t offset)>& put) {
  std::map<const void*, int64_t> offsets, sizes;
  for (const Operand& operand : operands(call)) {
    int64_t& size = sizes[operand.tensor->data()];
    size = std::max(size, (operand.tensor->bytes() + kAlignment - 1) / kAlignment * kAlignment);
  }
  int64_t end = 0;
  for (const auto& [data, size] : sizes) {
    offsets[data] = end;
    end += data == nullptr ? 0 : size;
  }
  for (const Operand& operand : operands(call)) {
    if (*operand.tensor) put(*operand.tensor, offsets.at(operand.tensor->data()));
  }
  return end;
}

bool is(const Operand& operand, const char* name) { return std::strcmp(operand.name, name) == 0; }

}  // namespace

Replay::Slots Replay::plan(const std::vector<OperationValue>& calls, const Device& device, MemoryPlan& plan,
                           const ReplayOptions& options) {
  int64_t most = 0;
  for (OperationValue call : calls) {
    cut_flat_state(call, most_elements(device));
    most = std::max(most, lay_out(call, [](Tensor&, int64_t) {}));
  }
  most = std::max(most, options.spread_bytes);
  return {plan.add("operations timed by themselves/operands", DType::kBF16, Shape{most / 2}),
          plan.add("operations timed by themselves/random values", DType::kF32, Shape{kRandom})};
}

Replay::Replay(Backend& backend, const std::vector<OperationValue>& calls, const ReplayOptions& options)
    : backend_(backend), options_(options), stream_(backend.device->make_stream()) {
  MemoryPlan memory;
  const Slots slots = plan(calls, *backend.device, memory, options);
  arena_ = std::make_unique<Arena>(memory, *backend.device);
  memory_ = (*arena_)[slots.operands];
  random_ = (*arena_)[slots.random];
  backend.ops->random_normal(*stream_, {.x = random_, .seed = 1, .name = "bench"});
}

void Replay::prepare(const OperationValue& call) {
  copies_.clear();
  int64_t begin = 0, size = 0;
  do {
    OperationValue copy = call;
    cut_flat_state(copy, most_elements(*backend_.device));
    size = lay_out(copy, [&](Tensor& tensor, int64_t offset) {
      tensor = Tensor(static_cast<std::byte*>(memory_.data()) + begin + offset, tensor.dtype(), tensor.shape());
    });
    for (const Operand& operand : operands(copy)) {
      if (*operand.tensor && operand.access != Access::kWrite) fill(operand);
    }
    make_tables(copy);
    copies_.push_back(std::move(copy));
    begin += size;
  } while (begin + size <= options_.spread_bytes && std::ssize(copies_) < kMostCalls);
  stream_->synchronize();
}

void Replay::make_tables(const OperationValue& call) {
  const auto make = [&](const auto& attention) {
    if (!attention.tables) return;
    backend_.ops->document_tables(
        *stream_, {.cu_seqlens = attention.cu_seqlens, .tables = attention.tables, .heads = attention.heads});
  };
  if (const auto* const forward = std::get_if<Attention>(&call)) make(*forward);
  if (const auto* const backward = std::get_if<AttentionBackward>(&call)) make(*backward);
}

void Replay::fill(const Operand& operand) {
  const Tensor x = *operand.tensor;
  if (x.dtype() == DType::kI32) {
    const RandomStream random(1, "bench ids");
    const std::vector<int32_t>& bounds = options_.cu_seqlens;
    std::vector<int32_t> values(x.count());
    if (is(operand, "cu_seqlens")) {
      TOKAMAK_CHECK(!bounds.empty() && bounds.size() <= values.size(), bounds.size(), " boundaries of documents in ",
                    values.size());
      std::fill(std::copy(bounds.begin(), bounds.end(), values.begin()), values.end(), bounds.back());
    } else if (is(operand, "positions")) {
      TOKAMAK_CHECK(bounds.back() == x.count(), bounds.back(), " tokens of documents, ", x.count(), " positions");
      for (size_t d = 0; d + 1 < bounds.size(); ++d) {
        std::iota(values.begin() + bounds[d], values.begin() + bounds[d + 1], 0);
      }
    } else {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<int32_t>(random.word(i) % options_.vocab);
      }
    }
    return backend_.device->copy_to_device(*stream_, values.data(), x);
  }
  if (x.dtype() == DType::kF64 || operand.is_positive()) return backend_.ops->fill(*stream_, {.x = x, .value = 1});
  // Draws normal values, since operations on constants draw less power and run faster, by 13 % on an H200.
  for (int64_t begin = 0; begin < x.count(); begin += kRandom) {
    const int64_t end = std::min(x.count(), begin + kRandom);
    backend_.ops->cast(*stream_, {.src = random_.flat(0, end - begin), .dst = x.flat(begin, end)});
  }
}

double Replay::bytes() const {
  OperationValue call = copies_.front();
  return operands(call).bytes();
}

void Replay::run() {
  std::visit(Overloaded{[](std::monostate) {},
#define TOKAMAK_RUN(name, Args) [&](const Args& args) { backend_.ops->name(*stream_, args); },
                        TOKAMAK_OPS(TOKAMAK_RUN)
#undef TOKAMAK_RUN
             },
             copies_[next_++ % copies_.size()]);
}

double Replay::seconds(double least) {
  const auto timed = [&](int64_t calls) {
    const Stopwatch watch;
    for (int64_t i = 0; i < calls; ++i) run();
    stream_->synchronize();
    return watch.seconds() / double(calls);
  };
  const double once = timed(1);
  const auto calls = std::clamp(static_cast<int64_t>(std::ceil(least / once)), int64_t{1}, kMostCalls);
  return calls == 1 ? once : timed(calls);
}

std::vector<OperationValue> calls_of(const std::vector<RecordedGemm>& gemms) {
  std::vector<OperationValue> calls;
  for (const RecordedGemm& gemm : gemms) calls.emplace_back(gemm.call);
  return calls;
}

std::vector<double> medians_in_turn(int64_t rounds, size_t count, const std::function<double(size_t)>& measure) {
  std::vector<std::vector<double>> values(count);
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < count; ++i) values[i].push_back(measure(i));
  }
  std::vector<double> medians;
  for (std::vector<double>& of_one : values) medians.push_back(median_of(std::move(of_one)));
  return medians;
}

double share_of_counted(std::string_view title, double attended, double counted) {
  return title.starts_with("attention") ? attended / counted : 1;
}

}  // namespace tokamak
