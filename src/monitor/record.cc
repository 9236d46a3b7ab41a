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

std::string RunEvent::text(std::string_view of) const {
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const NamedText& one) { return one.name == of; });
  return found == texts.end() ? "" : found->text;
}

bool MetricRecord::has(std::string_view name) const { return find(values, name) != values.end(); }

double MetricRecord::at(std::string_view name) const {
  const auto found = find(values, name);
  TOKAMAK_CHECK(found != values.end(), "the record of step ", step, " has no ", name);
  return found->value;
}

double MetricRecord::value_or(std::string_view name, double otherwise) const {
  const auto found = find(values, name);
  return found == values.end() ? otherwise : found->value;
}

}  // namespace tokamak
