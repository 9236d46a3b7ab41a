// A descriptor of cuDNN's graph API: made, filled in, finalized, destroyed with its owner. The first error stays and
// what follows it is left out, so that the caller asks once.
#pragma once

#include <cudnn.h>

#include <string>
#include <utility>
#include <vector>

namespace tokamak {

class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    status_ = cudnnBackendCreateDescriptor(type, &descriptor_);
  }
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), status_(other.status_) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(status_, other.status_);
    return *this;
  }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const void* elements,
                       int64_t count = 1) {
    if (ok()) status_ = cudnnBackendSetAttribute(descriptor_, name, type, count, elements);
    return *this;
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, int64_t value) { return set(name, CUDNN_TYPE_INT64, &value); }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, bool value) { return set(name, CUDNN_TYPE_BOOLEAN, &value); }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.data(), static_cast<int64_t>(values.size()));
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& part) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &part.descriptor_);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& parts) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const CudnnDescriptor& part : parts) raw.push_back(part.descriptor_);
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), static_cast<int64_t>(raw.size()));
  }

  CudnnDescriptor& finalize() {
    if (ok()) status_ = cudnnBackendFinalize(descriptor_);
    return *this;
  }

  // Into room for `room` elements; how many there are. Leaves the descriptor's own state as it is.
  cudnnStatus_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, void* elements,
                    int64_t room = 1, int64_t* count = nullptr) const {
    int64_t found = 0;
    const cudnnStatus_t status = cudnnBackendGetAttribute(descriptor_, name, type, room, &found, elements);
    if (count != nullptr) *count = found;
    return status;
  }

  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  cudnnStatus_t status() const { return status_; }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t status_;
};

}  // namespace tokamak
