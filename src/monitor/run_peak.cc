#include "monitor/run_peak.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

double RunPeak::see(const MetricRecord& record) {
  if (record.is("start")) ranks_ = record.value_or("ranks", 0);
  if (!record.is("ready")) return 1;
  device_ = str(record.event->text("device"), "\n", record.event->text("peak"), "\n", ranks_);
  own_ = record.value_or("peak/flops", 0);
  Rates& best = best_[device_];
  const double before = best.flops;
  best.flops = std::max(before, own_);
  best.memory = std::max(best.memory, record.value_or("peak/memory_rate", 0));
  return best_.size() == 1 && before > 0 ? before / best.flops : 1;
}

void RunPeak::reached(double flops) {
  // What a GPU's vendor states is no measurement.
  if (best_.size() == 1 && own_ > 0 && starts_with(device_, "CPU")) {
    best_.begin()->second.flops = std::max(best_.begin()->second.flops, flops);
  }
}

RunPeak::Rates RunPeak::best() const {
  const auto found = best_.find(device_);
  return found == best_.end() ? Rates{} : found->second;
}

MetricRecord RunPeak::scaled(MetricRecord record) const {
  if (own_ <= 0) return record;
  for (NamedValue& one : record.values) {
    if (starts_with(one.name, "throughput/mfu_")) one.value *= own_ / best().flops;
  }
  return record;
}

}  // namespace tokamak
