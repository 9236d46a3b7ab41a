// Caches open files, at most `limit` of them: a data set may have more shards than a process may have open files.
// Thread-safe. Closes the least recently used file first, and never one in use.
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
    explicit Entry(const std::string& path) : file(path, Kind::kData) {}
  };

 public:
  static constexpr int64_t kDefaultLimit = 256;
  explicit FilePool(int64_t limit = kDefaultLimit) : limit_(limit) {}
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

 private:
  const int64_t limit_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_path_;
};

}  // namespace tokamak
