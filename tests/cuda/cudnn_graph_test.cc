// cuDNN takes our graphs: asked with descriptions of GPUs that are not here (its ahead-of-time compilation), so that
// this runs on any machine that has the library. It proves shapes, strides and options, not results. The driver may be
// the toolkit's stub: cuDNN wants one to be there, and calls it only to load code.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "cuda/attention_cudnn_graph.h"
#include "cuda/attention_cudnn_library.h"

namespace {

struct Gpu {
  const char* name;
  int compute_capability;
  int multiprocessors;
  int shared_memory;  // that a block may have
};
constexpr Gpu kA100 = {"NVIDIA A100-SXM4-80GB", 80, 108, 166912};
constexpr Gpu kH100 = {"NVIDIA H100 80GB HBM3", 90, 132, 232448};
constexpr Gpu kB200 = {"NVIDIA B200", 100, 148, 232448};
constexpr bool kBackward = true, kDeterministic = true;

// cudnn-frontend asks the runtime as well; the linker sends its questions here (--wrap).
int asked_capability = 0;
size_t pretended_version = 0;  // of cuDNN; 0: what it is

}  // namespace

extern "C" size_t __real_cudnnGetVersion();
extern "C" size_t __wrap_cudnnGetVersion() {
  return pretended_version != 0 ? pretended_version : __real_cudnnGetVersion();
}
extern "C" cudaError_t __wrap_cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->major = asked_capability / 10;
  properties->minor = asked_capability % 10;
  return cudaSuccess;
}

using namespace tokamak;

namespace {

std::string description(const Gpu& gpu) {
  return str(R"({"deviceName":")", gpu.name, R"(","deviceVer":)", gpu.compute_capability * 10,
             R"(,"multiProcessorCount":)", gpu.multiprocessors, R"(,"maxSharedMemoryPerBlockOptin":)",
             gpu.shared_memory, R"(,"cudaDeviceId":0,"driverVer":13000,"isTccDriver":0,"l2CacheSize":52428800,)",
             R"("maxBlockSize":[1024,1024,64],"maxGridSize":[2147483647,65535,65535],"maxCtasPerSM":32,)",
             R"("maxRegistersPerSM":65536,"regsPerBlock":65536,"maxSharedMemoryPerBlock":49152,)",
             R"("reservedSharedMemoryPerBlock":1024,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)",
             R"("memClockRateKHz":2619000,"smClockRateKHz":1980000,"pciDeviceId":0,"supportCoopLaunch":1,)",
             R"("totalGlobalMem":85045149696,"warpSize":32})");
}

// Empty if cuDNN takes it.
std::string refusal(const Gpu& gpu, const AttentionGraphSpec& spec) {
  asked_capability = gpu.compute_capability;
  std::string why_not;
  AttentionGraph::build(spec, {nullptr, description(gpu), gpu.compute_capability}, &why_not);
  return why_not;
}

bool skipped() {
  std::string why_not;
  if (open_cudnn(&why_not)) return false;
  WARN("cudnn_graph_test skipped: " << why_not);
  return true;
}

}  // namespace

TEST_CASE("cuDNN takes attention and its gradient for every GPU that we build for") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const HeadLayout heads : {HeadLayout{32, 8, 128}, HeadLayout{12, 12, 64}, HeadLayout{4, 2, 80}}) {
      for (const UniformDocuments documents : {UniformDocuments{1, 4096}, UniformDocuments{4, 1000}}) {
        INFO(gpu.name << ": " << documents.count << " x " << documents.length << ", heads of " << heads.head_dim);
        CHECK(refusal(gpu, {documents, heads}) == "");
        CHECK(refusal(gpu, {documents, heads, kBackward}) == "");
        CHECK(refusal(gpu, {documents, heads, kBackward, kDeterministic}) == "");
      }
    }
  }
}

TEST_CASE("what cuDNN refuses, it refuses with a reason") {
  if (skipped()) return;
  CHECK(refusal(kA100, {{1, 512}, {8, 2, 256}}) == "");
  CHECK_THAT(refusal(kA100, {{1, 512}, {8, 2, 256}, kBackward}), Catch::Contains("hidden_dim"));
  CHECK(refusal(kH100, {{1, 512}, {8, 2, 256}, kBackward}) == "");
  CHECK(refusal(kB200, {{1, 512}, {8, 2, 256}, kBackward}) != "");
  CHECK(refusal(kH100, {{4, 1}, {8, 2, 64}, kBackward}) != "");
  CHECK_THAT(refusal(kH100, {{1, 512}, {8, 2, 12}}), Catch::Contains("multiple of 8"));
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    CHECK(refusal(gpu, {{1, 512}, {8, 3, 64}}) != "");
    CHECK(refusal(gpu, {{1, 512}, {8, 3, 64}, kBackward}) != "");
  }
}

TEST_CASE("an older cuDNN is not asked for what it does wrong") {
  if (skipped()) return;
  const AttentionGraphSpec deterministic{{4, 1024}, {8, 2, 128}, kBackward, kDeterministic};
  pretended_version = 91700;
  CHECK(refusal(kH100, deterministic) == "");
  CHECK(refusal(kB200, deterministic) != "");
  pretended_version = 0;
}

TEST_CASE("a refusal is one line, fit for the log") {
  if (skipped()) return;
  // No GPU has this many little shared memory: every engine has its own complaint.
  const Gpu impossible = {"none", 90, 132, 1024};
  const std::string why_not = refusal(impossible, {{1, 512}, {8, 2, 128}, kBackward});
  CHECK(why_not != "");
  CHECK(why_not.find('\n') == std::string::npos);
}

TEST_CASE("cuDNN takes separate tensors too") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, false, false, true}) == "");
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, kBackward, false, true}) == "");
  }
}
