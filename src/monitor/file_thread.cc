#include "monitor/file_thread.h"

#include <chrono>

#include "base/log.h"
#include "base/service_thread.h"

namespace tokamak {

FileThread::FileThread(FileSinks files, size_t capacity) : capacity_(capacity) {
  for (auto& sink : files) files_.push_back({std::move(sink)});
  thread_ = start_service_thread("metric files", [this] { run(); });
}

FileThread::~FileThread() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
  for (const File& file : files_) {
    if (file.dropped > 0) log::warning(file.sink->path(), ": ", file.dropped, " record(s) were dropped");
  }
}

void FileThread::write(const MetricRecord& record) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= capacity_ && !record.event) {
      if (overflow_++ == 0) log::warning("the disk of the metrics is too slow; records are dropped until it keeps up");
      return;
    }
    waiting_.push_back(record);
  }
  wake_.notify_one();
}

bool FileThread::flush(double seconds) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return waiting_.empty(); });
}

void FileThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const MetricRecord& record = waiting_.front();  // a deque does not move it when others are appended
    lock.unlock();
    for (File& file : files_) write_to(file, record);
    lock.lock();
    waiting_.pop_front();
    if (!waiting_.empty()) continue;
    if (overflow_ > 0) log::warning("the metrics are up to date; ", overflow_, " record(s) were dropped");
    overflow_ = 0;
    done_.notify_all();
  }
}

// Never throws, since a failing disk must not end training. Warns once when a sink begins to drop records.
void FileThread::write_to(File& file, const MetricRecord& record) noexcept {
  constexpr int64_t kWrittenInARow = 5;  // a full disk still takes a short record here and there
  if (!file.sink->takes(record)) return;
  try {
    file.sink->write(record);
  } catch (const std::exception& error) {
    file.written = 0;
    if (file.dropped++ > 0) return;
    log::warning(error.what(), "; its records are dropped until it can be written again");
    return;
  }
  if (file.dropped == 0 || ++file.written < kWrittenInARow) return;
  log::warning(file.sink->path(), " is written again; ", file.dropped, " record(s) were dropped");
  file.dropped = 0;
}

}  // namespace tokamak
