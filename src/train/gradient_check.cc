#include "train/gradient_check.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tokamak {

GradientCheck::GradientCheck(Engine& engine) : engine_(engine) {
  const auto units = static_cast<int64_t>(engine.table().units.size());
  MemoryPlan plan;
  const auto contributions = plan.add("checksums of contributions", DType::kI32, Shape{units, 2});
  const auto sums = plan.add("checksums of sums", DType::kI32, Shape{units, 2});
  arena_ = std::make_unique<Arena>(plan, *engine.backend().device);
  contributions_ = (*arena_)[contributions];
  sums_ = (*arena_)[sums];
}

// Compares bits: a loss that is NaN in both is equal.
bool GradientCheck::Print::same_losses(const Print& other) const {
  return std::memcmp(losses.data(), other.losses.data(), sizeof losses) == 0;
}

bool GradientCheck::Print::operator==(const Print& other) const {
  return same_losses(other) && contributions == other.contributions && sums == other.sums;
}

GradientCheck::Result GradientCheck::run(const NextBatch& first, const NextBatch& second, int64_t micro_batches) {
  Result result;
  first_ = compute(first, micro_batches, result.attended);
  second_ = compute(second, micro_batches, result.attended);
  std::vector<std::string> own;
  if (!first_.same_losses(second_)) own.emplace_back("the loss");
  if (const std::string units = units_that_differ(first_.contributions, second_.contributions); !units.empty())
    own.push_back(units);
  result.own = join(own, "; ");
  result.received = units_that_differ(first_.sums, second_.sums);
  return result;
}

bool GradientCheck::settle(const NextBatch& third, int64_t micro_batches) {
  double attended = 0;
  const Print print = compute(third, micro_batches, attended);
  return print == first_ || print == second_;
}

GradientCheck::Print GradientCheck::compute(const NextBatch& next, int64_t micro_batches, double& attended) {
  ShardedParameters& parameters = engine_.parameters();
  Stream& compute = engine_.compute();
  const Backend& backend = engine_.backend();
  backend.ops->fill(compute, {.x = contributions_, .value = 0});
  backend.ops->fill(compute, {.x = sums_, .value = 0});
  parameters.weights_changed();  // so that a damaged copy of another rank's weights is not used twice
  parameters.record_contributions(contributions_);
  attended = compute_gradients(engine_, next, micro_batches);
  parameters.record_contributions({});
  for (int64_t u = 0; u < sums_.dim(0); ++u) {
    const int64_t begin = parameters.slice_begin(u);
    const Tensor slice = parameters.gradients().flat(begin, begin + parameters.slice_elements(u));
    backend.ops->checksum(compute, {.x = slice, .sum = sums_.rows(u, u + 1).flat()});
  }
  Print print;
  const auto fetch = [&](Tensor from, std::vector<int32_t>& to) {
    to.resize(static_cast<size_t>(from.count()));
    backend.device->copy_to_host(compute, from, to.data());
  };
  fetch(contributions_, print.contributions);
  fetch(sums_, print.sums);
  backend.device->copy_to_host(compute, engine_.sums(), print.losses.data());
  compute.synchronize();
  if (engine_.mesh().data().size() == 1) print.contributions = print.sums;  // nothing is summed
  return print;
}

std::string GradientCheck::units_that_differ(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const {
  constexpr size_t kMostNames = 4;
  std::vector<std::string> names;
  std::string norms;  // norms of all layers; they do not show where the error began
  // Backward goes from the last unit to the first: an error began in the first unit that is named.
  for (size_t u = engine_.table().units.size(); u-- > 0;) {
    if (a[2 * u] == b[2 * u] && a[2 * u + 1] == b[2 * u + 1]) continue;
    const Unit& unit = engine_.table().units[u];
    if (unit.kind == UnitKind::kNorms) {
      norms = unit.name;
    } else {
      names.push_back(unit.name);
    }
  }
  if (!norms.empty()) names.push_back(norms);
  const size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? str(" and ", more, " more") : "");
}

}  // namespace tokamak
