// metrics.jsonl and tensors.jsonl: one record a line, only ever appended to, by one start of the run after the other.
//   {"step":10,"time":"2026-01-31T12:34:56.789Z","tokens":5120,"loss/avg":2.31, ...}   values; what is not finite is null
//   {"step":10,"time":"...","tokens":5120,"time/samples":0.5,"samples":[{"prompt":"It was","text":" the"}, ...]}
//   {"event":"stop","step":10,"time":"...","detail":"signal 15", ...}     an event, then its texts and its values if any
// tensors.jsonl has the statistics of tensors, whose lines are a hundred times longer:
//   {"step":10, ..., "tensors":["lm_head.weight",...],"elements":[...],"weights":{...},"gradients":{...},"updates":{...}}
//   {"event":"ready","step":10, ...}                    where a start goes on from, as in metrics.jsonl; resume likewise
// They are columns, with a place for each of "tensors": {"rms":[...],"min":[...],"max":[...],"non_finite":[...],
// "zeros":[...],"log2_first":[...],"log2_counts":[[...],...]}; tensor_record.h says what they are. Runs of
// older versions have them in metrics.jsonl.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/line_appender.h"
#include "monitor/sink.h"

namespace tokamak {

class RecordFile : public FileSink {
 public:
  const std::string& path() const override { return file_.path(); }

 protected:
  explicit RecordFile(const std::string& path);  // Error(kConfig) where it cannot be opened
  void append(const MetricRecord& record);

 private:
  LineAppender file_;
};

// Every record, without statistics of tensors.
class JsonlFile : public RecordFile {
 public:
  explicit JsonlFile(const std::string& path) : RecordFile(path) {}
  void write(const MetricRecord& record) override;
};

// Statistics of tensors, and which steps a start leaves behind.
class TensorFile : public RecordFile {
 public:
  explicit TensorFile(const std::string& path) : RecordFile(path) {}
  bool takes(const MetricRecord& record) const override;
  void write(const MetricRecord& record) override;
};

inline constexpr int64_t kLongestRecord = int64_t{64} << 20;  // bytes; statistics of the largest models have some 10

// Of one line without its newline; nothing where it is no record.
std::optional<MetricRecord> parse_record(std::string_view line);

enum class ReadTensors { kNo, kYes };  // they take a thousand times a record's memory

// As read_records, of the events of these names. Quick, for no other line is parsed.
void read_events(const std::string& path, std::initializer_list<const char*> names,
                 const std::function<void(const MetricRecord&)>& see);

// Calls `see` with each record of the file, if there is one. Lines that are no record are skipped (a crash cuts one
// short), and so are values that are no number (null); of statistics of tensors null is NaN.
void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see,
                  ReadTensors tensors = ReadTensors::kNo);

}  // namespace tokamak
