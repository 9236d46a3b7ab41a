#include "monitor/record.h"

#include "base/error.h"

namespace tokamak {

NamedValue count_value(std::string name, int64_t count) { return {std::move(name), static_cast<double>(count), true}; }

std::string RunEvent::text(std::string_view of) const {
  for (const NamedText& one : texts) {
    if (one.name == of) return one.text;
  }
  return "";
}

const TensorSummary* TensorRecord::find(std::string_view kind) const {
  for (const Part& part : parts) {
    if (part.kind == kind) return &part.values;
  }
  return nullptr;
}

const TensorSummary& TensorRecord::at(std::string_view kind) const {
  const TensorSummary* const found = find(kind);
  TOKAMAK_CHECK(found != nullptr, name, " has no ", kind);
  return *found;
}

double TensorRecord::update_ratio() const {
  const TensorSummary *const weights = find(tensor_kinds::kWeights), *const updates = find(tensor_kinds::kUpdates);
  const bool has_ratio = weights != nullptr && updates != nullptr && weights->rms > 0;
  return has_ratio ? updates->rms / weights->rms : std::numeric_limits<double>::quiet_NaN();
}

const NamedValue* MetricRecord::find(std::string_view name) const {
  for (const NamedValue& one : values) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

double MetricRecord::at(std::string_view name) const {
  const NamedValue* const found = find(name);
  TOKAMAK_CHECK(found != nullptr, "the record of step ", step, " has no ", name);
  return found->value;
}

double MetricRecord::value_or(std::string_view name, double otherwise) const {
  const NamedValue* const found = find(name);
  return found == nullptr ? otherwise : found->value;
}

}  // namespace tokamak
