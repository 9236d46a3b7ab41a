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
