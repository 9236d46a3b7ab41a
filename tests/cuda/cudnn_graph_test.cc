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
  constexpr char kLess[] = "mode=304";  // than the documents' lengths: keys behind them are masked
  const AttentionGraphSpec partial{{4, 1000}, {8, 2, 128}, kBackward},
      deterministic{{4, 1024}, {8, 2, 128}, kBackward, kDeterministic};
  take_recorded_text();
  pretended_version = 91500;
  const bool refused = refusal(kH100, partial) != "";
  CHECK((refused || take_recorded_text().find(kLess) != std::string::npos));
  CHECK(refusal(kH100, {{4, 1024}, {8, 2, 128}, kBackward}) == "");
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

namespace {

// Addresses are passed on, never followed; plans are not made, since they are code for a GPU.
char* address(int64_t number) { return reinterpret_cast<char*>(number << 40); }
const AttentionPointers kPointers{address(1), address(2), address(3), address(4), address(5), 0.25f};
char* const kWorkspace = address(6);

RecordedRun run_on(const Gpu& gpu, const AttentionGraphSpec& spec, int64_t* workspace_bytes) {
  pretend_gpu(description(gpu));
  asked_capability = gpu.compute_capability;
  const auto handle = reinterpret_cast<cudnnHandle_t>(address(7));
  std::string why_not;
  auto graph = AttentionGraph::build(spec, {handle, "", gpu.compute_capability}, &why_not);
  REQUIRE(why_not == "");
  CHECK(graph->engine().substr(0, 3) == "eng");
  graph->run(handle, kPointers, reinterpret_cast<std::byte*>(kWorkspace));
  *workspace_bytes = graph->workspace_bytes();
  return recorded_run();
}

// The call's own tensors; what is left of `run` are the graph's.
void check_call_tensors(const AttentionGraphSpec& spec, RecordedRun& run) {
  const int64_t rows = spec.separate_tensors ? spec.documents.tokens() : 1;
  const int64_t key = 2 * rows * spec.heads.q_width(), value = key + 2 * rows * spec.heads.kv_width();  // bytes
  std::map<int64_t, char*> expected = {{kQuery, address(1)},
                                       {kKey, address(1) + key},
                                       {kValue, address(1) + value},
                                       {kOut, address(2)},
                                       {kStats, address(3)}};
  if (spec.backward) {
    expected.insert(
        {{kDOut, address(4)}, {kDQuery, address(5)}, {kDKey, address(5) + key}, {kDValue, address(5) + value}});
  }
  CHECK(run.addresses == run.tensors.size());
  for (auto tensor = run.tensors.begin(); tensor != run.tensors.end();) {
    const bool is_scale = tensor->id == kScale;
    if (is_scale) CHECK(tensor->value == kPointers.scale);
    if (!is_scale && expected.count(tensor->id) == 0) {
      ++tensor;
      continue;
    }
    if (!is_scale) CHECK(tensor->address == expected.at(tensor->id));
    expected.erase(tensor->id);
    tensor = run.tensors.erase(tensor);
  }
  CHECK(expected.empty());
}

}  // namespace

TEST_CASE("a run gives cuDNN every tensor's address, and workspace within what was asked for") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const auto& [backward, deterministic] : {std::pair(false, false), {true, false}, {true, true}}) {
      for (const bool separate : {false, true}) {
        INFO(gpu.name << (backward ? ", backward" : ", forward") << (deterministic ? ", deterministic" : "")
                      << (separate ? ", separate" : ""));
        // 129 rows of 3 heads: a region's bytes are a multiple of no alignment.
        const AttentionGraphSpec spec{{3, 43}, {3, 1, 64}, backward, deterministic, separate};
        int64_t workspace_bytes = 0;
        RecordedRun run = run_on(gpu, spec, &workspace_bytes);
        CHECK(run.handle_for_graph);
        CHECK(run.plan_was_finalized);
        check_call_tensors(spec, run);

        std::vector<float> constants;
        std::map<char*, int64_t> regions;  // of the workspace, with their bytes; all of them are f32
        for (const auto& tensor : run.tensors) {
          if (tensor.by_value) {
            constants.push_back(tensor.value);
          } else {
            CHECK(regions.emplace(tensor.address, tensor.elements * 4).second);
          }
        }
        std::sort(constants.begin(), constants.end());
        const float infinity = std::numeric_limits<float>::infinity();
        CHECK(constants == (backward ? std::vector{-infinity, 1.0f} : std::vector{-infinity}));

        CHECK(regions.size() == (deterministic ? 1 : backward ? 2 : 0));
        regions.emplace(run.workspace, run.workspace_bytes);  // cuDNN's own, after them
        char* end = kWorkspace;
        for (const auto& [begin, bytes] : regions) {
          CHECK(begin >= end);
          if (begin != run.workspace) CHECK(reinterpret_cast<uintptr_t>(begin) % 16 == 0);
          end = begin + bytes;
        }
        CHECK(end <= kWorkspace + workspace_bytes);
      }
    }
  }
}

TEST_CASE("cuDNN takes separate tensors too") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, false, false, true}) == "");
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, kBackward, false, true}) == "");
  }
  take_recorded_text();
  refusal(kH100, {{3, 256}, {8, 2, 64}, false, false, true});
  CHECK_THAT(take_recorded_text(), Catch::Contains("dims=3,8,256,1 strides=2048,256,1,1 id=5"));
  refusal(kH100, {{3, 256}, {8, 2, 64}, kBackward, false, true});
  const std::string text = take_recorded_text();
  for (const char* query : {"id=1", "id=4", "id=7", "id=8"}) {
    CHECK_THAT(text, Catch::Contains(str("dims=3,8,256,64 strides=131072,16384,64,1 ", query)));
  }
  for (const char* key : {"id=9", "id=10"}) {
    CHECK_THAT(text, Catch::Contains(str("dims=3,2,256,64 strides=32768,16384,64,1 ", key)));
  }
  for (const char* key : {"id=2", "id=3"}) {  // transposed
    CHECK_THAT(text, Catch::Contains(str("dims=3,2,64,256 strides=32768,16384,1,64 ", key)));
  }
}
