#include "data/file_pool.h"

namespace tokamak {

FilePool::Lease::~Lease() {
  const std::lock_guard lock(pool_.mutex_);
  --entry_.users;
}

FilePool::Lease FilePool::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_path_.find(path); found != by_path_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
  } else {
    auto oldest = entries_.end();
    while (std::ssize(entries_) >= limit_ && oldest != entries_.begin()) {
      --oldest;
      if (oldest->users > 0) continue;
      by_path_.erase(oldest->file.path());
      oldest = entries_.erase(oldest);
    }
    entries_.emplace_front(path, ReadRetries{read_retries_, &retries_});
    by_path_[path] = entries_.begin();
  }
  Entry& entry = entries_.front();
  ++entry.users;
  return Lease(*this, entry);
}

}  // namespace tokamak
