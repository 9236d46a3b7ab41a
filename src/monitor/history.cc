#include "monitor/history.h"

#include <algorithm>
#include <iterator>

#include "monitor/jsonl.h"

namespace tokamak {

namespace {

bool report_the_same(const MetricRecord& a, const MetricRecord& b) {
  return std::any_of(a.values.begin(), a.values.end(),
                     [&](const NamedValue& one) { return one.name != "tokens" && b.has(one.name); });
}

}  // namespace

bool goes_back(const MetricRecord& record) {
  return record.is("resume") || record.is("ready") || record.is("rollback");
}

bool sets_course(const MetricRecord& record) { return !record.event || goes_back(record); }

void add_to_history(std::vector<MetricRecord>& history, MetricRecord record) {
  if (!sets_course(record)) return;
  // Steps ascend, so the records of this step are the last ones.
  const auto replaced = [&](const MetricRecord& earlier) {
    return earlier.step > record.step || (earlier.step == record.step && report_the_same(earlier, record));
  };
  auto first = history.end();
  while (first != history.begin() && std::prev(first)->step >= record.step) --first;
  history.erase(std::remove_if(first, history.end(), replaced), history.end());
  if (!record.event) history.push_back(std::move(record));
}

std::vector<MetricRecord> read_history(const std::string& path) {
  std::vector<MetricRecord> history;
  read_records(path, [&](const MetricRecord& record) { add_to_history(history, record); });
  return history;
}

}  // namespace tokamak
