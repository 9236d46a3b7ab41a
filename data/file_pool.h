// Caches open files, at most `limit` of them: a data set may have more shards than a process may have open files.
// Thread-safe. Closes the least recently used file first, and never one in use. Its files repeat failed reads.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/file.h"

namespace tokamak {

class FilePool {
  struct Entry {
    InputFile file;
    int64_t users = 0;
    Entry(const std::string& path, ReadRetries retries) : file(path, Kind::kData, retries) {}
  };

 public:
  static constexpr int64_t kDefaultLimit = 256;
  // `read_retries`: of each failed read (ReadRetries::most).
  explicit FilePool(int64_t limit = kDefaultLimit, int64_t read_retries = 0)
      : limit_(limit), read_retries_(read_retries) {}
  FilePool(const FilePool&) = delete;
  FilePool& operator=(const FilePool&) = delete;

  // A file that stays open for the lifetime of the lease. The pool must outlive it.
  class Lease {
   public:
    Lease(FilePool& pool, Entry& entry) : pool_(pool), entry_(entry) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const InputFile& file() const { return entry_.file; }

   private:
    FilePool& pool_;
    Entry& entry_;
  };

  Lease open(const std::string& path);  // Error(kData) if it cannot be opened

  int64_t limit() const { return limit_; }
  int64_t retries() const { return retries_.load(); }  // repetitions of failed reads so far

 private:
  const int64_t limit_;
  const int64_t read_retries_;
  std::atomic<int64_t> retries_ = 0;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_path_;
};

}  // namespace tokamak
