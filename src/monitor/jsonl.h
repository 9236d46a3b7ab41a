// metrics.jsonl: one record a line, only ever appended to, by one start of the run after the other.
//   {"step":10,"time":"2026-01-31T12:34:56.789Z","tokens":5120,"loss/avg":2.31, ...}   values; what is not finite is null
//   {"step":10,"time":"...","tokens":5120,"time/samples":0.5,"samples":[{"prompt":"It was","text":" the"}, ...]}
//   {"event":"stop","step":10,"time":"...","detail":"signal 15", ...}     an event, then its texts and its values if any
//   {"step":10, ..., "tensors":["lm_head.weight",...],"elements":[...],"weights":{...},"gradients":{...},"updates":{...}}
// Statistics of tensors are columns, with a place for each of "tensors": {"rms":[...],"min":[...],"max":[...],
// "non_finite":[...],"zeros":[...],"log2_first":[...],"log2_counts":[[...],...]}; tensor_record.h says what they are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/line_appender.h"
#include "monitor/sink.h"

namespace tokamak {

class JsonlFile : public FileSink {
 public:
  explicit JsonlFile(const std::string& path);  // Error(kConfig) where it cannot be opened
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return file_.path(); }

 private:
  LineAppender file_;
};

// Of one line without its newline; nothing where it is no record.
std::optional<MetricRecord> parse_record(std::string_view line);

enum class ReadTensors { kNo, kYes };  // they take a thousand times a record's memory

// Calls `see` with each record of the file, if there is one. Lines that are no record are skipped (a crash cuts one
// short), and so are values that are no number (null); of statistics of tensors null is NaN.
void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see,
                  ReadTensors tensors = ReadTensors::kNo);

}  // namespace tokamak
