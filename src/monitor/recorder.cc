#include "monitor/recorder.h"

#include "base/clock.h"

namespace tokamak {

namespace {

constexpr double kSecondsToFlush = 5;  // a disk that hangs is no reason for training to hang

}  // namespace

void Recorder::write(MetricRecord record) {
  record.time = unix_milliseconds();
  for (const auto& sink : sinks_) sink->write(record);
}

void Recorder::step(int64_t step) {
  for (const auto& sink : sinks_) sink->step(step);
}

void Recorder::event(int64_t step, RunEvent event, std::vector<NamedValue> values) {
  write({.step = step, .event = std::move(event), .values = std::move(values)});
}

void Recorder::flush() {
  for (const auto& sink : sinks_) sink->flush(kSecondsToFlush);
}

}  // namespace tokamak
