// Reads what another process has appended to a metrics.jsonl since the last call. It polls, since a network file
// system does not announce changes. It compares the bytes before the last offset, so it detects a truncated or
// replaced file; a new copy with equal bytes (rsync) is read on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

class RecordTail {
 public:
  // Reads at most `most_bytes` a call; longer lines are skipped.
  explicit RecordTail(std::string path, int64_t most_bytes = int64_t{4} << 20);

  struct News {
    bool is_new_file = false;  // truncated or replaced: `records` begin with its first line
    std::vector<MetricRecord> records;
    bool has_more = false;
    double read_share = 1;     // of the file, so far
    std::string trouble = {};  // why nothing can be read, or ""
  };
  // Never throws. A last line without its newline waits until it is complete. If no newline
  // comes for longer than any record, `trouble` is set until the file is replaced.
  News poll();

 private:
  void take(std::string_view block, News& news);
  bool is_continued(const class InputFile& file) const;

  std::string path_;
  int64_t most_bytes_;
  int64_t offset_ = 0;   // of the first unread byte
  std::string mark_;     // the bytes before it
  int64_t skipped_ = 0;  // bytes of a long line in which offset_ lies
};

}  // namespace tokamak
