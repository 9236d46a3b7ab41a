// CUDA graphs by stream capture, and the events that time what a stream does.
#include "cuda/check.h"
#include "cuda/device.h"

namespace tokamak {

// Of this thread alone: a call that a capture does not bear (it takes memory, it waits) is an error here, and the
// thread that reads data or watches NCCL may do as it likes.
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
    cudaGetLastError();  // the runtime keeps it, and the run may go on without the graph
    cuda_failed(error, "recording a graph", __FILE__, __LINE__);
  }
  return std::make_unique<CudaGraph>(exec);
}

// The stream is as it was; the error that brought us here is on its way to whoever reports it.
void CudaGraph::abandon(CudaStream& stream) noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream.handle(), &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // the runtime keeps it
}

CudaGraph::~CudaGraph() { cudaGraphExecDestroy(exec_); }
void CudaGraph::launch(Stream& stream) { TOKAMAK_CUDA(cudaGraphLaunch(exec_, tokamak::handle(stream))); }

CudaTimer::CudaTimer() {
  TOKAMAK_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDefault));
  TOKAMAK_CUDA(cudaEventCreateWithFlags(&end_, cudaEventDefault));
}
CudaTimer::~CudaTimer() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}
void CudaTimer::start(Stream& stream) { TOKAMAK_CUDA(cudaEventRecord(begin_, handle(stream))); }
void CudaTimer::stop(Stream& stream) { TOKAMAK_CUDA(cudaEventRecord(end_, handle(stream))); }

std::optional<double> CudaTimer::seconds() {
  const cudaError_t state = cudaEventQuery(end_);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // the runtime may keep it, and it is no error
    return std::nullopt;
  }
  TOKAMAK_CUDA(state);
  float milliseconds = 0;
  TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace tokamak
