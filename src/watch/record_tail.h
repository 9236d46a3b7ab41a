// Reads a metrics.jsonl that another process appends to, perhaps from another machine: each call takes what has come since
// the last one, however long the file is. It polls, for a network file system tells nobody of changes. A file that was cut,
// or that another one has replaced, is noticed by the bytes before the place where reading stopped; a copy that was made
// anew (rsync) goes on where the last one ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

class RecordTail {
 public:
  // Reads at most `most_bytes` a call. A line that is longer is no record.
  explicit RecordTail(std::string path, int64_t most_bytes = int64_t{4} << 20);

  struct News {
    bool is_anew =
        false;  // another file than before: what was read is of the past, `records` begin with its first line
    std::vector<MetricRecord> records;
    bool has_more = false;     // there is more to read at once
    double read_share = 1;     // of the file, by now
    std::string trouble = {};  // why nothing can be read, "" if it can
  };
  // Never throws for what it finds. A last line without its newline waits until it is whole. A file with a line that is far
  // longer than any record is read no further.
  News poll();

 private:
  void take(std::string_view block, News& news);
  bool is_continued(const class InputFile& file) const;

  std::string path_;
  int64_t most_bytes_;
  int64_t offset_ = 0;         // of what was not taken yet
  std::string mark_;           // the bytes before it
  bool in_long_line_ = false;  // offset_ lies in a line that is being skipped
  int64_t skipped_ = 0;        // bytes of it
};

}  // namespace tokamak
