#include "backend/finite_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/bf16.h"
#include "base/strings.h"

namespace tokamak {

namespace {

bool is_checked(const Operand& operand) {
  return *operand.tensor && operand.tensor->count() > 0 && operand.tensor->dtype() != DType::kI32;
}

constexpr int64_t kPart = 1 << 16;  // elements that are copied to the host at once

double number(double value) { return value; }
double number(bf16 value) { return static_cast<float>(value); }

template <class T>
std::vector<double> as_doubles(const std::vector<std::byte>& bytes) {
  const auto* data = reinterpret_cast<const T*>(bytes.data());
  std::vector<double> values;
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) values.push_back(number(data[i]));
  return values;
}

// The elements begin to end - 1 of the flat tensor.
std::vector<double> copy_of(Device& device, Stream& stream, Tensor tensor, int64_t begin, int64_t end) {
  const Tensor part = tensor.flat(begin, end);
  std::vector<std::byte> bytes(static_cast<size_t>(part.bytes()));
  device.copy_to_host(stream, part, bytes.data());
  stream.synchronize();
  switch (tensor.dtype()) {
    case DType::kF32:
      return as_doubles<float>(bytes);
    case DType::kBF16:
      return as_doubles<bf16>(bytes);
    case DType::kF64:
      return as_doubles<double>(bytes);
    case DType::kI32:
      break;
  }
  return {};
}

struct Element {
  int64_t index = 0;  // in the flat tensor
  double value = 0;
};

std::optional<Element> first_non_finite(Device& device, Stream& stream, Tensor tensor) {
  for (int64_t begin = 0; begin < tensor.count(); begin += kPart) {
    const int64_t end = std::min(begin + kPart, tensor.count());
    const std::vector<double> values = copy_of(device, stream, tensor, begin, end);
    const auto first = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    if (first != values.end()) return Element{begin + (first - values.begin()), *first};
  }
  return std::nullopt;
}

}  // namespace

FiniteCheck::FiniteCheck(Backend& backend, double seconds) : backend_(backend), seconds_(seconds) {
  MemoryPlan plan;
  const auto slot = plan.add("statistics", DType::kF64, Shape{kStatistics});
  arena_ = std::make_unique<Arena>(plan, *backend.device);
  statistics_ = (*arena_)[slot];
}

bool FiniteCheck::is_over() {
  if (!found_ && watch_.seconds() > seconds_) gave_up_ = true;
  return found_ || gave_up_;
}

void FiniteCheck::begin(Stream& stream, const Call& call) {
  if (checking_ || is_over()) return;
  checking_ = true;
  ++calls_;
  inputs_.clear();
  const Operand* bad = nullptr;
  int64_t count = 0;
  for (const Operand& operand : call.operands) {
    if (operand.access == Access::kWrite || !is_checked(operand)) continue;
    const Measured measured = measure(stream, *operand.tensor);
    inputs_.push_back({str(operand.name, " ", operand.tensor->text()), measured.greatest});
    if (bad != nullptr || measured.non_finite == 0) continue;
    bad = &operand;
    count = measured.non_finite;
  }
  if (bad != nullptr) find(stream, call, *bad, count, true);
  checking_ = false;
}

void FiniteCheck::end(Stream& stream, const Call& call) {
  if (checking_ || is_over()) return;
  checking_ = true;
  for (const Operand& operand : call.operands) {
    if (found_ || operand.access == Access::kRead || !is_checked(operand)) continue;
    const Measured measured = measure(stream, *operand.tensor);
    if (measured.non_finite > 0) find(stream, call, operand, measured.non_finite, false);
  }
  checking_ = false;
}

FiniteCheck::Measured FiniteCheck::measure(Stream& stream, Tensor tensor) {
  stream.synchronize();                 // on a CPU, the stream's own thread may still write the tensor
  if (tensor.dtype() == DType::kF64) {  // sums of a step
    Measured measured;
    for (const double value : copy_of(*backend_.device, stream, tensor, 0, tensor.count())) {
      if (!std::isfinite(value)) ++measured.non_finite;
      if (std::isfinite(value)) measured.greatest = std::max(measured.greatest, std::abs(value));
    }
    return measured;
  }
  backend_.ops->statistics(stream, {.x = tensor.flat(), .out = statistics_});
  std::array<double, kStatistics> values{};
  backend_.device->copy_to_host(stream, statistics_, values.data());
  stream.synchronize();
  const double greatest = std::max(std::abs(values[kMin]), std::abs(values[kMax]));
  return {std::isfinite(greatest) ? greatest : 0, std::llround(values[kNonFinite])};  // 0: no finite value
}

void FiniteCheck::find(Stream& stream, const Call& call, const Operand& operand, int64_t count, bool is_input) {
  const std::optional<Element> first = first_non_finite(*backend_.device, stream, *operand.tensor);
  if (!first) return;  // written since by another stream
  found_ = {.call = calls_,
            .is_input = is_input,
            .operation = call.title(),
            .section = backend_.device->section(),
            .operand = operand.name,
            .tensor = *operand.tensor,
            .index = first->index,
            .value = std::isnan(first->value) ? std::abs(first->value) : first->value,  // not "-nan"
            .count = count,
            .inputs = inputs_};
}

}  // namespace tokamak
