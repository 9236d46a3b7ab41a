// Shared by the cases of NCCL's group: the ranks that mpirun started, their device and their group.
#pragma once

#include "backend/backend.h"
#include "comm/comm.h"
#include "comm/world.h"
#include "tensor/arena.h"

namespace tokamak::nccl_ranks {

extern World* world;  // defined by main
extern Backend* backend;
extern Comm* data;

int nodes();  // more than 1 only on the emulator, where a variable of NCCL says so
RuntimeOptions options();

// Tensors in the device's memory for exchange, with copies from and to the host.
class Exchanged {
 public:
  MemoryPlan::Slot add(DType dtype, int64_t count) {
    return plan_.add("x", dtype, Shape{count}, MemoryKind::kExchanged);
  }
  void commit(Comm& group = *data) {
    arena_ = std::make_unique<Arena>(plan_, *backend->device);
    group.register_memory();
  }
  Tensor operator[](MemoryPlan::Slot slot) const { return (*arena_)[slot]; }

  template <class T>
  void write(Tensor tensor, const std::vector<T>& values) {
    backend->device->copy_to_device(*stream, values.data(), tensor);
  }
  template <class T>
  std::vector<T> read(Tensor tensor) {
    std::vector<T> values(static_cast<size_t>(tensor.count()));
    backend->device->copy_to_host(*stream, tensor, values.data());
    stream->synchronize();
    return values;
  }

  std::unique_ptr<Stream> stream = backend->device->make_stream();

 private:
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace tokamak::nccl_ranks
