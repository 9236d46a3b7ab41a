// Writes the records of file sinks in a separate thread, so that training waits for no disk. A record that a disk
// refuses is dropped for that file, and the next one is tried. A warning says when that begins and when it ends.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "monitor/sink.h"

namespace tokamak {

class FileThread : public Sink {
 public:
  // `capacity`: records that may wait for a disk. If more wait, it drops records of values, but never events.
  explicit FileThread(FileSinks files, size_t capacity = 1024);
  ~FileThread() override;  // writes the waiting records
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  void write(const MetricRecord& record) override;
  bool flush(double seconds) override;

 private:
  struct File {
    std::unique_ptr<FileSink> sink;
    int64_t dropped = 0;  // since the disk last worked
    int64_t written = 0;  // since the last one dropped
  };
  void run();
  static void write_to(File& file, const MetricRecord& record) noexcept;

  std::vector<File> files_;  // used by the thread only
  const size_t capacity_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<MetricRecord> waiting_;  // the first is being written
  int64_t overflow_ = 0;              // records dropped since `waiting_` was full
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak
