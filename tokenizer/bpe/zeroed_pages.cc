#include "tokenizer/bpe/zeroed_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

ZeroedPages::ZeroedPages(size_t bytes) : mapped_(bytes < kHugePage ? bytes : bytes + kHugePage), bytes_(bytes) {
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) fail_errno(Kind::kDevice, str("no memory for a table of ", bytes, " bytes"));
  data_ = mapping_;
  if (bytes < kHugePage) return;
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  data_ = static_cast<char*>(mapping_) + (-address & (kHugePage - 1));
  madvise(data_, bytes, MADV_HUGEPAGE);  // before the first touch; it fails where there are no huge pages
}

ZeroedPages::~ZeroedPages() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

void ZeroedPages::clear() { std::memset(data_, 0, bytes_); }

}  // namespace tokamak
