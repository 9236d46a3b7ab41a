#include "cuda/device.h"

#include <algorithm>
#include <cstring>

#include "backend/peak_flops.h"
#include "base/error.h"
#include "cuda/check.h"

namespace tokamak {

namespace {

// Buffers large enough to hide the cost of their events, and few enough to use little host memory.
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr size_t kPieces = 16;

}  // namespace

CudaEvent::CudaEvent() { TOKAMAK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }
void CudaEvent::synchronize() { TOKAMAK_CUDA(cudaEventSynchronize(event_)); }

CudaStream::CudaStream(StreamPriority priority) {
  int least = 0, greatest = 0;  // the greatest priority is the smaller number
  TOKAMAK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TOKAMAK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                            priority == StreamPriority::kHigh ? greatest : least));
}
CudaStream::~CudaStream() { cudaStreamDestroy(stream_); }
void CudaStream::do_record(Event& event) {
  TOKAMAK_CUDA(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_));
}
void CudaStream::do_wait(const Event& event) {
  TOKAMAK_CUDA(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0));
}
void CudaStream::do_synchronize() { TOKAMAK_CUDA(cudaStreamSynchronize(stream_)); }

UploadRing::~UploadRing() {
  for (const auto& buffer : buffers_) cudaFreeHost(buffer->memory);
}

UploadRing::Buffer& UploadRing::next() {
  if (buffers_.size() < kPieces) {
    buffers_.push_back(std::make_unique<Buffer>());
    Buffer& buffer = *buffers_.back();
    TOKAMAK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&buffer.memory), static_cast<size_t>(kPieceBytes)));
    return buffer;
  }
  Buffer& buffer = *buffers_[at_++ % kPieces];
  buffer.read.synchronize();
  return buffer;
}

void UploadRing::copy(CudaStream& stream, const void* host, void* device, int64_t bytes) {
  const auto* from = static_cast<const std::byte*>(host);
  auto* to = static_cast<std::byte*>(device);
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const auto count = static_cast<size_t>(std::min(kPieceBytes, bytes - at));
    Buffer& buffer = next();
    std::memcpy(buffer.memory, from + at, count);
    TOKAMAK_CUDA(cudaMemcpyAsync(to + at, buffer.memory, count, cudaMemcpyHostToDevice, stream.handle()));
    stream.record(buffer.read);
  }
}

CudaDevice::CudaDevice(int index) : index_(index) {
  TOKAMAK_CUDA(cudaSetDevice(index));
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, index));
  name_ = properties.name;
}

std::byte* CudaDevice::allocate(int64_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::kPinned) return allocate_pinned(bytes);
  const auto count = static_cast<size_t>(bytes);
  void* memory = kind == MemoryKind::kExchanged && exchanged_ != nullptr ? exchanged_->allocate(count) : nullptr;
  cudaError_t error = cudaSuccess;
  if (memory == nullptr) error = cudaMalloc(&memory, count);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forgets this error, which fail() reports: the check of a later launch would find it
    const int64_t available = available_bytes();
    fail(Kind::kDevice,
         str("not enough GPU memory: asked for ", human_bytes(bytes), ", ", human_bytes(available), " available"),
         "a smaller training.micro_batch_size, more ranks to shard over, or activation_checkpoint.mode: full");
  }
  TOKAMAK_CUDA(error);
  TOKAMAK_CUDA(cudaMemset(memory, 0, count));
  TOKAMAK_CUDA(cudaDeviceSynchronize());  // our streams do not wait for the default stream
  peak_ = std::max(peak_, used_bytes());
  return static_cast<std::byte*>(memory);
}

// Other threads may call this concurrently: it changes no member.
std::byte* CudaDevice::allocate_pinned(int64_t bytes) const {
  TOKAMAK_CUDA(cudaSetDevice(index_));  // for this thread: a new thread would use GPU 0
  void* memory = nullptr;
  const cudaError_t error = cudaMallocHost(&memory, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forgets this error, which fail() reports: the check of a later launch would find it
    fail(Kind::kDevice, str("not enough host memory to pin: asked for ", human_bytes(bytes)),
         "more host memory, also in the limit of a batch job or container, or fewer ranks on a node");
  }
  TOKAMAK_CUDA(error);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory, int64_t, MemoryKind kind) noexcept {
  if (kind == MemoryKind::kExchanged && exchanged_ != nullptr && exchanged_->release(memory)) return;
  kind == MemoryKind::kPinned ? cudaFreeHost(memory) : cudaFree(memory);
}

void CudaDevice::show_to(std::unique_ptr<Observer> ranges) {
  ranges_ = std::move(ranges);
  if (ranges_ != nullptr) observe(*ranges_);
}

std::string CudaDevice::description() const {
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, index_));
  int driver = 0;
  TOKAMAK_CUDA(cudaDriverGetVersion(&driver));
  return str("GPU ", index_, ", ", properties.name, ", ", human_bytes(properties.totalGlobalMem),
             ", compute capability ", properties.major, ".", properties.minor, ", driver for CUDA ", driver / 1000, ".",
             driver % 1000 / 10);
}

std::unique_ptr<Stream> CudaDevice::do_make_stream(StreamPriority priority) {
  return std::make_unique<CudaStream>(priority);
}

std::unique_ptr<Event> CudaDevice::make_event() { return std::make_unique<CudaEvent>(); }

std::unique_ptr<Graph> CudaDevice::record(Stream& stream, const std::function<void()>& work) {
  auto& own = static_cast<CudaStream&>(stream);
  CudaGraph::begin(own);
  try {
    work();
  } catch (...) {
    CudaGraph::abandon(own);
    throw;
  }
  return CudaGraph::end(own);
}

int64_t CudaDevice::total_bytes() const {
  size_t available = 0, total = 0;
  TOKAMAK_CUDA(cudaMemGetInfo(&available, &total));
  return static_cast<int64_t>(total);
}

int64_t CudaDevice::available_bytes() const {
  size_t available = 0, total = 0;
  TOKAMAK_CUDA(cudaMemGetInfo(&available, &total));
  return static_cast<int64_t>(available);
}

double CudaDevice::peak_flops(DType dtype) const { return peak_flops_of(name_, dtype); }

void CudaDevice::do_copy_to_device(Stream& stream, const void* host, Tensor tensor) {
  uploads_.copy(static_cast<CudaStream&>(stream), host, tensor.data(), tensor.bytes());
}

void CudaDevice::do_copy_to_host(Stream& stream, Tensor tensor, void* host) {
  TOKAMAK_CUDA(cudaMemcpyAsync(host, tensor.data(), static_cast<size_t>(tensor.bytes()), cudaMemcpyDeviceToHost,
                               static_cast<CudaStream&>(stream).handle()));
}

}  // namespace tokamak
