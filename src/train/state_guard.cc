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
  const auto of_update = plan.add("checksums at an update", DType::kI32, shape, MemoryKind::kPinned);
  const auto now = plan.add("checksums now", DType::kI32, shape, MemoryKind::kPinned);
  arena_ = std::make_unique<Arena>(plan, *engine.backend().device);
  sums_ = (*arena_)[sums];
  of_update_ = (*arena_)[of_update];
  now_ = (*arena_)[now];
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
  TOKAMAK_CHECK(!waits_, "the last update was not asked about");
  add_checksums(kSeen);
  fetch(of_update_);
}

void StateGuard::after_update() {
  add_checksums(kKept);
  waits_ = true;
}

std::string StateGuard::take() {
  TOKAMAK_CHECK(waits_, "no update waits to be asked about");
  waits_ = false;
  return changed(of_update_);
}

std::string StateGuard::changed_now() {
  add_checksums(kNow);
  fetch(now_);
  engine_.backend().ops->fill(engine_.compute(), {.x = sums(kNow), .value = 0});
  engine_.compute().synchronize();
  return changed(now_);
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
