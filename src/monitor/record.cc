#include "monitor/record.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

auto find(const std::vector<NamedValue>& values, std::string_view name) {
  return std::find_if(values.begin(), values.end(), [&](const NamedValue& one) { return one.name == name; });
}

}  // namespace

NamedValue count_value(std::string name, int64_t count) { return {std::move(name), static_cast<double>(count), true}; }

bool MetricRecord::has(std::string_view name) const { return find(values, name) != values.end(); }

double MetricRecord::at(std::string_view name) const {
  const auto found = find(values, name);
  TOKAMAK_CHECK(found != values.end(), "the record of step ", step, " has no ", name);
  return found->value;
}

}  // namespace tokamak
