#include "monitor/history.h"

#include <algorithm>
#include <string_view>

#include "monitor/jsonl.h"

namespace tokamak {

namespace {

bool report_the_same(const MetricRecord& a, const MetricRecord& b) {
  return std::any_of(a.values.begin(), a.values.end(),
                     [&](const NamedValue& one) { return one.name != "tokens" && b.has(one.name); });
}

}  // namespace

bool sets_course(const MetricRecord& record) { return !record.event || record.is("resume") || record.is("ready"); }

void History::see(MetricRecord record) {
  if (!sets_course(record)) return;
  while (!records_.empty() && records_.back().step > record.step) records_.pop_back();
  // Steps ascend, so those of this one are the last.
  const auto same_step = std::find_if(records_.rbegin(), records_.rend(), [&](const MetricRecord& earlier) {
                           return earlier.step < record.step;
                         }).base();
  records_.erase(std::remove_if(same_step, records_.end(),
                                [&](const MetricRecord& earlier) { return report_the_same(earlier, record); }),
                 records_.end());
  if (!record.event) records_.push_back(std::move(record));
}

std::vector<MetricRecord> read_history(const std::string& path) {
  History history;
  read_records(path, [&](const MetricRecord& record) { history.see(record); });
  return history.records();
}

}  // namespace tokamak
