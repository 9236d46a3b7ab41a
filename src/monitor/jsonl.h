// metrics.jsonl and tensors.jsonl: one record a line, appended by one start of the run after the other.
//   {"step":10,"time":"2026-01-31T12:34:56.789Z","tokens":5120,"loss/avg":2.31, ...}   null: not finite
//   {"step":10,"time":"...","tokens":5120,"time/samples":0.5,"samples":[{"prompt":"It was","text":" the"}, ...]}
//   {"event":"stop","step":10,"time":"...","detail":"signal 15", ...}     an event, then its texts and values
// tensors.jsonl has the statistics of tensors, in lines a hundred times longer:
//   {"step":10, ..., "tensors":["lm_head.weight",...],"elements":[...],"weights":{...},"gradients":{...},"updates":{...},
//    "exp_avg":{...}, ...}                             the kinds of record.h
//   {"event":"ready","step":10, ...}                    the events resume and ready, as in metrics.jsonl
// Each {...} has columns with one entry for each of "tensors", null if it was not measured: {"rms":[...],"min":[...],
// "max":[...],"non_finite":[...],"zeros":[...],"log2_first":[...],"log2_counts":[[...],...]}, the members of
// TensorSummary (record.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/line_appender.h"
#include "monitor/sink.h"

namespace tokamak {

// Every record, without statistics of tensors.
class JsonlFile : public FileSink {
 public:
  explicit JsonlFile(const std::string& path);  // Error(kConfig) if it cannot be opened
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return file_.path(); }

 protected:
  void append(const MetricRecord& record);

 private:
  LineAppender file_;
};

// Statistics of tensors, and the events that history.h needs.
class TensorFile : public JsonlFile {
 public:
  using JsonlFile::JsonlFile;
  bool takes(const MetricRecord& record) const override;
  void write(const MetricRecord& record) override;
};

inline constexpr int64_t kLongestRecord = int64_t{64} << 20;  // bytes; statistics of the largest models take 10 MiB

// Reads one line without its newline; nullopt if it is not a record.
std::optional<MetricRecord> parse_record(std::string_view line);

enum class ReadTensors { kNo, kYes };  // they take a thousand times a record's memory

// Calls `see` with each record of the file, if it exists. Skips lines that are no record (a crash cuts one short) and
// values that are no number (null). In statistics of tensors null is NaN.
void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see,
                  ReadTensors tensors = ReadTensors::kNo);

}  // namespace tokamak
