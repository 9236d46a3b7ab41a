#include "train/state_guard.h"

#include <cstring>

#include "base/error.h"

namespace tokamak {

StateGuard::StateGuard(Engine& engine) : engine_(engine), parts_(engine.state()) {
  // Averages: to read them would cost as much of the host link as to update them at each step.
  std::erase_if(parts_, [](const StateTensor& part) { return part.in_host_memory; });
  const Tensor weights = engine.parameters().weights();
  if (weights.data() != parts_.front().tensor.data())
    parts_.push_back({.name = "compute copy", .tensor = weights, .units = {}});
  const Shape shape = {kRows, static_cast<int64_t>(parts_.size()), 2};
  MemoryPlan plan;
  const auto sums = plan.add("checksums", DType::kI32, shape);
  std::vector<MemoryPlan::Slot> host;
  for (int64_t i = 0; i <= kDepth; ++i) {
    host.push_back(plan.add(str("checksums ", i), DType::kI32, shape, MemoryKind::kPinned));
  }
  arena_ = std::make_unique<Arena>(plan, *engine.backend().device);
  sums_ = (*arena_)[sums];
  for (size_t i = 0; i <= kDepth; ++i) host_[i] = (*arena_)[host[i]];
  add_checksums(kKept);
}

void StateGuard::add_checksums(Row row) {
  for (size_t p = 0; p < parts_.size(); ++p) {
    const auto at = 2 * static_cast<int64_t>(p);
    engine_.backend().ops->checksum(engine_.compute(), {.x = parts_[p].tensor, .sum = sums(row).flat(at, at + 2)});
  }
}

void StateGuard::fetch(Tensor host) { engine_.backend().device->copy_to_host(engine_.compute(), sums_, host.data()); }

void StateGuard::before_update() {
  TOKAMAK_CHECK(updates_ - taken_ < kDepth, updates_ - taken_, " updates were not asked about");
  add_checksums(kSeen);
  fetch(host_[updates_ % kDepth]);
}

void StateGuard::after_update() {
  add_checksums(kKept);
  ++updates_;
}

std::string StateGuard::take() {
  TOKAMAK_CHECK(taken_ < updates_, "no update waits to be asked about");
  return changed(host_[taken_++ % kDepth]);
}

std::string StateGuard::changed_now() {
  add_checksums(kNow);
  fetch(host_[kDepth]);
  engine_.backend().ops->fill(engine_.compute(), {.x = sums(kNow), .value = 0});
  engine_.compute().synchronize();
  return changed(host_[kDepth]);
}

std::string StateGuard::changed(Tensor host) const {
  const auto sum = [&](Row row, size_t part) {
    uint64_t value = 0;
    const auto at = 2 * static_cast<int64_t>(part);
    std::memcpy(&value, host.rows(row, row + 1).flat(at, at + 2).data(), sizeof value);
    return value;
  };
  std::vector<std::string> names;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (sum(kKept, p) != sum(kSeen, p) + sum(kNow, p)) names.push_back(parts_[p].name);
  }
  return join(names, ", ");
}

}  // namespace tokamak
