// cuDNN takes our graphs: asked with descriptions of GPUs that are not here (its ahead-of-time compilation), so that
// this runs on any machine that has the library. It proves shapes, strides and options, not results. The driver may be
// the toolkit's stub: cuDNN wants one to be there, and calls it only to load code.
//
// One program for each implementation of AttentionGraph, and both must build the graphs of cudnn_graphs.txt, which are
// cudnn-frontend 1.18's. A newer one's: test_cudnn_graph_frontend '[print]'.
#include <cuda_runtime.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>

#include "base/strings.h"
#include "cuda/attention_cudnn_graph.h"
#include "cuda/attention_cudnn_library.h"
#include "cuda/attention_cudnn_tensors.h"
#include "cuda/cudnn_recorder.h"

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

}  // namespace

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
  CHECK(refusal(kH100, {{1, 512}, {8, 3, 64}}) != "");
}

TEST_CASE("a refusal is one line, fit for the log") {
  if (skipped()) return;
  // No GPU has this many little shared memory: every engine has its own complaint.
  const Gpu impossible = {"none", 90, 132, 1024};
  const std::string why_not = refusal(impossible, {{1, 512}, {8, 2, 128}, kBackward});
  CHECK(why_not != "");
  CHECK(why_not.find('\n') == std::string::npos);
}

namespace {

// With the shape's every number different from the others.
std::string recorded_graphs() {
  constexpr UniformDocuments kDocuments{3, 256};
  constexpr HeadLayout kGrouped{8, 2, 64}, kEqual{5, 5, 64};
  std::string text;
  const auto record = [&](const char* name, const Gpu& gpu, const AttentionGraphSpec& spec) {
    take_recorded_text();
    refusal(gpu, spec);
    text += str(text.empty() ? "" : "\n", name, "\n", take_recorded_text());
  };
  record("forward", kH100, {kDocuments, kGrouped});
  record("backward", kH100, {kDocuments, kGrouped, kBackward});
  record("backward, deterministic", kH100, {kDocuments, kGrouped, kBackward, kDeterministic});
  record("backward, equal heads", kH100, {kDocuments, kEqual, kBackward});
  record("backward, deterministic, Blackwell", kB200, {kDocuments, kEqual, kBackward, kDeterministic});
  return text;
}

}  // namespace

TEST_CASE("print the graphs", "[.print]") { std::cout << recorded_graphs(); }

TEST_CASE("the graphs are cudnn-frontend's, operation by operation") {
  if (skipped()) return;
  std::ifstream file(TOKAMAK_CUDNN_GRAPHS);
  const std::vector<std::string> expected = split(std::string(std::istreambuf_iterator<char>(file), {}), '\n');
  const std::vector<std::string> recorded = split(recorded_graphs(), '\n');
  REQUIRE(expected.size() > 100);
  for (size_t i = 0; i < std::min(expected.size(), recorded.size()); ++i) {
    INFO("line " << i + 1);
    REQUIRE(recorded[i] == expected[i]);
  }
  CHECK(recorded.size() == expected.size());
}

TEST_CASE("a run gives cuDNN every tensor's address, and workspace within what was asked for") {
  if (skipped()) return;
  // Addresses are passed on, never followed; plans are not made, since they are code for a GPU.
  const auto at = [](int64_t address) { return reinterpret_cast<char*>(address << 40); };
  char* const workspace = at(7);
  const AttentionPointers pointers{at(1), at(2), at(3), at(4), at(5), 0.25f};
  const auto handle = reinterpret_cast<cudnnHandle_t>(at(6));
  const HeadLayout heads{3, 1, 64};
  const int64_t key = 2 * heads.q_width(), value = key + 2 * heads.kv_width();  // bytes
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    pretend_gpu(description(gpu));
    asked_capability = gpu.compute_capability;
    for (const auto& [backward, deterministic] : {std::pair(false, false), {true, false}, {true, true}}) {
      INFO(gpu.name << (backward ? ", backward" : ", forward") << (deterministic ? ", deterministic" : ""));
      std::string why_not;
      // 129 rows of 3 heads: a region's bytes are a multiple of no alignment.
      auto graph = AttentionGraph::build({{1, 129}, heads, backward, deterministic},
                                         {handle, "", gpu.compute_capability}, &why_not);
      REQUIRE(why_not == "");
      CHECK(graph->engine().substr(0, 3) == "eng");
      graph->run(handle, pointers, reinterpret_cast<std::byte*>(workspace));
      const RecordedRun run = recorded_run();

      std::map<int64_t, char*> expected = {
          {kQuery, at(1)}, {kKey, at(1) + key}, {kValue, at(1) + value}, {kOut, at(2)}, {kStats, at(3)}};
      if (backward) {
        expected.insert({{kDOut, at(4)}, {kDQuery, at(5)}, {kDKey, at(5) + key}, {kDValue, at(5) + value}});
      }
      std::vector<float> constants;
      std::map<char*, int64_t> regions;  // of the workspace, with their bytes
      for (const auto& tensor : run.tensors) {
        if (tensor.id == kScale) {
          CHECK(tensor.value == 0.25f);
        } else if (tensor.by_value) {
          constants.push_back(tensor.value);
        } else if (expected.count(tensor.id) > 0) {
          CHECK(tensor.address == expected.at(tensor.id));
          expected.erase(tensor.id);
        } else {
          CHECK(regions.emplace(tensor.address, tensor.elements * 4).second);  // all of them f32
        }
      }
      CHECK(expected.empty());
      CHECK(run.addresses == run.tensors.size());
      std::sort(constants.begin(), constants.end());
      const float infinity = std::numeric_limits<float>::infinity();
      CHECK(constants == (backward ? std::vector{-infinity, 1.0f} : std::vector{-infinity}));

      CHECK(regions.size() == (deterministic ? 1 : backward ? 2 : 0));
      char* end = workspace;
      for (const auto& [address, bytes] : regions) {
        CHECK(address >= end);
        CHECK(reinterpret_cast<uintptr_t>(address) % 16 == 0);
        end = address + bytes;
      }
      CHECK(run.workspace >= end);
      CHECK(run.workspace <= workspace + graph->workspace_bytes());
    }
  }
}
