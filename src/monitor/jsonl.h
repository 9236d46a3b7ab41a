// metrics.jsonl: one record a line, only ever appended to.
//   {"step":10,"tokens":5120,"loss/avg":2.31, ...}                  values; what is not finite is null
//   {"event":"stop","step":10,"time":"2026-01-31T12:34:56Z","detail":"signal 15"}    an event, then its values if any
#pragma once

#include <fstream>
#include <functional>
#include <string>

#include "monitor/sink.h"

namespace tokamak {

class JsonlFile : public Sink {
 public:
  explicit JsonlFile(const std::string& path);      // Error(kConfig) where it cannot be opened
  void write(const MetricRecord& record) override;  // a failure is a warning, once, and ends this file alone

 private:
  std::string path_;
  std::ofstream file_;
};

// Calls `see` with each record of the file, if there is one. Lines that are no record are skipped (a crash cuts one
// short), and so are values that are no number (null).
void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see);

}  // namespace tokamak
