// CUDA graphs by stream capture, and timing events.
#include "cuda/check.h"
#include "cuda/device.h"

namespace tokamak {

// Thread-local capture: a call that a capture forbids (allocation, synchronisation) fails on this thread, while the
// loader's and NCCL's threads are unaffected.
void CudaGraph::begin(CudaStream& stream) {
  TOKAMAK_CUDA(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal));
}

std::unique_ptr<CudaGraph> CudaGraph::end(CudaStream& stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream.handle(), &graph);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&exec, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (error != cudaSuccess) {
    cudaGetLastError();  // clears the runtime's sticky error: the run may continue without the graph
    cuda_failed(error, "recording a graph", __FILE__, __LINE__);
  }
  return std::make_unique<CudaGraph>(exec);
}

// Restores the stream; the original exception is already propagating.
void CudaGraph::abandon(CudaStream& stream) noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream.handle(), &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // clears the error, which the runtime keeps
}

CudaGraph::~CudaGraph() { cudaGraphExecDestroy(exec_); }
void CudaGraph::do_launch(Stream& stream) { TOKAMAK_CUDA(cudaGraphLaunch(exec_, tokamak::handle(stream))); }

CudaTimestamp::CudaTimestamp() { TOKAMAK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDefault)); }
CudaTimestamp::~CudaTimestamp() { cudaEventDestroy(event_); }
void CudaTimestamp::record(Stream& stream) { TOKAMAK_CUDA(cudaEventRecord(event_, handle(stream))); }

std::optional<double> CudaTimestamp::seconds_since(const Timestamp& earlier) const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears a status that is not an error
    return std::nullopt;
  }
  TOKAMAK_CUDA(state);
  float milliseconds = 0;
  TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, static_cast<const CudaTimestamp&>(earlier).event_, event_));
  return 1e-3 * double(milliseconds);
}

}  // namespace tokamak
