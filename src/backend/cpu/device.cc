#include "backend/cpu/device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/parallel_for.h"
#include "base/process.h"

namespace tokamak {

namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kCopyGrain = int64_t{1} << 20;

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (starts_with(line, "model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "unknown processor";
}

// The instruction set that oneDNN uses for bf16 GEMMs on this processor.
std::string bf16_unit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("amx-bf16")) return "bf16 by AMX";
  if (__builtin_cpu_supports("avx512bf16")) return "bf16 by AVX512-BF16";
#endif
  return "bf16 emulated in f32";
}

int64_t rounded_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

// Returns memory aligned to huge pages, which the system zeroes at first touch; nullptr if there is not enough.
std::byte* map_huge_pages(int64_t bytes) {
  const int64_t rounded = rounded_up(bytes, kPage), mapped = rounded + kHugePage;
  void* const all =
      mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(all);
  const int64_t skip = rounded_up(static_cast<int64_t>(reinterpret_cast<intptr_t>(first)), kHugePage) -
                       static_cast<int64_t>(reinterpret_cast<intptr_t>(first));
  if (skip > 0) munmap(first, static_cast<size_t>(skip));
  munmap(first + skip + rounded, static_cast<size_t>(kHugePage - skip));
  madvise(first + skip, static_cast<size_t>(rounded), MADV_HUGEPAGE);  // advice: failing is harmless
  return first + skip;
}

void copy(void* to, const void* from, int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace

CpuStream::CpuStream(StreamPriority priority, WorkQueues& queues) : queues_(queues) {
  if (priority != StreamPriority::kHigh) return;
  queue_ = std::make_unique<WorkQueue>();
  queues_.add(*queue_);
}

CpuStream::~CpuStream() {
  if (queue_ != nullptr) queues_.remove(*queue_);
}

void CpuStream::run_on_host(std::function<void()> work) {
  if (queue_ == nullptr) return work();
  queue_->push(std::move(work));
}

void CpuStream::do_wait(const Event& event) {
  const CpuPoint point = static_cast<const CpuEvent&>(event).point;
  if (point.queue == queue_.get() || point.reached()) return;
  run_on_host([point] { point.wait(); });
}

bool CpuStream::blocks_host(const Event& event) const {
  return !has_own_thread() && !static_cast<const CpuEvent&>(event).point.reached();
}

CpuTimestamp::~CpuTimestamp() {
  if (seconds_ != kNotReached || point_.queue == nullptr) return;
  try {
    point_.wait();                   // queued work may still write seconds_
  } catch (const std::exception&) {  // of the stream's work; those who wait for the stream get it
  }
}

void CpuTimestamp::record(Stream& stream) {
  seconds_ = kNotReached;
  stream.run_on_host([this] { seconds_ = now_seconds(); });
  point_ = static_cast<CpuStream&>(stream).point();
}

std::optional<double> CpuTimestamp::seconds_since(const Timestamp& earlier) const {
  const double begin = static_cast<const CpuTimestamp&>(earlier).seconds_, end = seconds_;
  if (begin == kNotReached || end == kNotReached) return std::nullopt;
  return end - begin;
}

std::byte* CpuDevice::allocate(int64_t bytes, MemoryKind kind) {
  const int64_t available = available_bytes();
  const auto refuse = [&] {
    const std::string limit = tightest_memory_limit();
    fail(Kind::kDevice,
         str("not enough memory: asked for ", human_bytes(bytes), "; ",
             limit.empty() ? human_bytes(available) + " are available" : limit),
         "a smaller training.micro_batch_size, more ranks to shard over, or activation_checkpoint.mode: full");
  };
  if (bytes > available) refuse();

  if (bytes < kHugePage) {
    void* const memory = std::aligned_alloc(kPage, static_cast<size_t>(rounded_up(bytes, kPage)));
    if (memory == nullptr) refuse();
    return static_cast<std::byte*>(std::memset(memory, 0, static_cast<size_t>(rounded_up(bytes, kPage))));
  }
  std::byte* const memory = map_huge_pages(bytes);
  if (memory == nullptr) refuse();
  const auto touch = [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kPage) memory[at] = std::byte{0};  // a byte of each page is enough
  };
  // First touch by the threads that will use the pages: NUMA-local allocation. Pinned memory is only copied to and read
  // once, and may be allocated while all threads compute, so the calling thread touches it.
  if (kind == MemoryKind::kPinned) {
    touch(0, bytes);
  } else {
    parallel_for(bytes, kCopyGrain, touch);
  }
  return memory;
}

void CpuDevice::release(std::byte* memory, int64_t bytes, MemoryKind) noexcept {
  finish_streams();
  if (bytes < kHugePage) return std::free(memory);
  munmap(memory, static_cast<size_t>(rounded_up(bytes, kPage)));
}

std::string CpuDevice::description() const {
  return str("CPU, ", processor_name(), ", ", thread_count(), thread_count() == 1 ? " thread, " : " threads, ",
             bf16_unit());
}

// Copies first wait for the stream's thread, if any, and are complete when they return.
void CpuDevice::do_copy_to_device(Stream& stream, const void* host, Tensor tensor) {
  static_cast<CpuStream&>(stream).point().wait();
  copy(tensor.data(), host, tensor.bytes());
}

void CpuDevice::do_copy_to_host(Stream& stream, Tensor tensor, void* host) {
  static_cast<CpuStream&>(stream).point().wait();
  copy(host, tensor.data(), tensor.bytes());
}

}  // namespace tokamak
