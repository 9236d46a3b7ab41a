// Zeroed memory for large hash tables, on huge pages where the system has them: a random access then seldom misses the
// TLB.
#pragma once

#include <cstddef>
#include <utility>

namespace tokamak {

class ZeroedPages {
 public:
  ZeroedPages() = default;
  explicit ZeroedPages(size_t bytes);  // Error(kDevice) without memory
  ZeroedPages(ZeroedPages&& other) noexcept { swap(other); }
  ZeroedPages& operator=(ZeroedPages&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ZeroedPages();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void clear();  // all bytes become 0

 private:
  void swap(ZeroedPages& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;  // aligned to 2 MiB if there is that much
  size_t bytes_ = 0;
};

}  // namespace tokamak
