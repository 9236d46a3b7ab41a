// cuDNN supports our graphs. It is queried with descriptions of absent GPUs (its ahead-of-time compilation), so this
// runs on any machine that has the library. It checks shapes, strides and options, not results. The driver may be the
// toolkit's stub: cuDNN requires one, and calls it only to load code.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <map>

#include "base/strings.h"
#include "cuda/attention/cudnn_graph.h"
#include "cuda/attention/cudnn_library.h"
#include "cuda/attention/cudnn_tensors.h"

namespace {

struct Gpu {
  const char* name;
  int compute_capability;
  int multiprocessors;
  int shared_memory;  // bytes that a block may have
};
constexpr Gpu kA100 = {"NVIDIA A100-SXM4-80GB", 80, 108, 166912};
constexpr Gpu kH100 = {"NVIDIA H100 80GB HBM3", 90, 132, 232448};
constexpr Gpu kB200 = {"NVIDIA B200", 100, 148, 232448};
constexpr bool kBackward = true, kDeterministic = true;

// cudnn-frontend queries the CUDA runtime, too. The linker redirects its queries to this file (--wrap).
int asked_capability = 0;
size_t pretended_version = 0;  // version that cuDNN reports; 0: its own

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
std::string refusal(const Gpu& gpu, const AttentionGraphSpec& spec,
                    int64_t most_bytes = std::numeric_limits<int64_t>::max()) {
  asked_capability = gpu.compute_capability;
  std::string why_not;
  AttentionGraph::build(spec, {nullptr, description(gpu), gpu.compute_capability, most_bytes}, &why_not);
  return why_not;
}

bool skipped() {
  std::string why_not;
  if (open_cudnn(&why_not)) return false;
  WARN("cudnn_graph_test skipped: " << why_not);
  return true;
}

}  // namespace

TEST_CASE("cuDNN supports attention and its gradient on every architecture of the build") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const HeadLayout heads : {HeadLayout{32, 8, 128}, HeadLayout{12, 12, 64}, HeadLayout{4, 2, 80}}) {
      for (const DocumentBatch documents : {DocumentBatch{1, 4096}, DocumentBatch{4, 1000}}) {
        INFO(gpu.name << ": " << documents.count << " x " << documents.length << ", heads of " << heads.head_dim);
        CHECK(refusal(gpu, {documents, heads}) == "");
        CHECK(refusal(gpu, {documents, heads, kBackward}) == "");
        CHECK(refusal(gpu, {documents, heads, kBackward, kDeterministic}) == "");
      }
    }
  }
}

TEST_CASE(
    "cuDNN supports ragged documents on every architecture of the build, except in Ampere's deterministic gradient") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const HeadLayout heads : {HeadLayout{32, 8, 128}, HeadLayout{12, 12, 64}, HeadLayout{4, 2, 80}}) {
      for (const int64_t slots : {1, 8, 64}) {
        INFO(gpu.name << ": " << slots << " slots, heads of " << heads.head_dim);
        const DocumentBatch documents = ragged_documents(slots, 8192, 16384);
        CHECK(refusal(gpu, {documents, heads}) == "");
        CHECK(refusal(gpu, {documents, heads, kBackward}) == "");
        const std::string why_not = refusal(gpu, {documents, heads, kBackward, kDeterministic});
        if (gpu.compute_capability == 80) {
          CHECK_THAT(why_not, Catch::Contains("Deterministic"));
        } else {
          CHECK(why_not == "");
        }
      }
    }
  }
}

TEST_CASE("cuDNN supports windows wherever it supports the documents") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const HeadLayout heads : {HeadLayout{32, 8, 128}, HeadLayout{12, 12, 64}}) {
      for (const DocumentBatch documents : {DocumentBatch{1, 4096}, ragged_documents(8, 8192, 16384)}) {
        for (const int64_t window : {1, 1000, 4095}) {
          INFO(gpu.name << ", a window of " << window << ", heads of " << heads.head_dim);
          CHECK(refusal(gpu, {.documents = documents, .heads = heads, .window = window}) == "");
          CHECK(refusal(gpu, {.documents = documents, .heads = heads, .backward = true, .window = window}) == "");
        }
      }
    }
  }
}

TEST_CASE("ragged documents are found in every tensor where ops.h has them") {
  const HeadLayout heads{4, 2, 8};
  const int32_t cu[] = {0, 5, 5, 14};
  std::byte qkv[14 * 64 * 2], out[14 * 32 * 2], dout[14 * 32 * 2], dqkv[14 * 64 * 2], lse[14 * 4 * 4],
      own[4][14 * 16 * 2];
  const DocumentTableLayout layout(8, heads);
  std::vector<std::byte> tables(static_cast<size_t>(layout.bytes()));
  float scale = 0;
  for (const bool backward : {false, true}) {
    const AttentionGraphSpec spec{ragged_documents(3, 9, 14), heads, backward};
    const auto addresses = addresses_of(
        spec, {qkv, out, lse, dout, dqkv, {own[0], own[1], own[2], own[3]}, tables.data(), layout.entries}, &scale);
    // Element (h, t, i) of document 2, as cuDNN finds it, with the widths that the tables' rows have.
    const auto found = [&](CallTensor tensor, int64_t h, int64_t t, int64_t i) {
      const std::map<int64_t, void*> known(addresses.begin(), addresses.end());
      const CallTensorShape shape = shape_of(spec, tensor);
      const int64_t rows = *offsets_of(spec, tensor) - kOffsets;
      const int64_t offset = document_offset(cu, 3, 2, layout.widths[rows]);
      const int64_t element = offset + h * shape.strides[1] + t * shape.strides[2] + i * shape.strides[3];
      const auto offsets = DocumentTables::Offsets(rows);
      CHECK(known.at(offsets_in(offsets)) == tables.data() + layout.offsets_at(offsets));
      return static_cast<std::byte*>(known.at(tensor)) + element * (shape.type == CallType::kF32 ? 4 : 2);
    };
    const int64_t token = 5 + 3;
    CHECK(found(kQuery, 1, 3, 6) == qkv + (token * 64 + 8 + 6) * 2);
    CHECK(found(kOut, 1, 3, 6) == out + (token * 32 + 8 + 6) * 2);
    CHECK(found(kStats, 1, 3, 0) == lse + (token * 4 + 1) * 4);
    CHECK(found(kKey, 1, 3, 6) == (backward ? own[0] + (token * 16 + 8 + 6) * 2 : qkv + (token * 64 + 32 + 14) * 2));
    CHECK(found(kValue, 1, 3, 6) == (backward ? own[1] + (token * 16 + 8 + 6) * 2 : qkv + (token * 64 + 48 + 14) * 2));
    if (!backward) continue;
    CHECK(found(kDOut, 1, 3, 6) == dout + (token * 32 + 8 + 6) * 2);
    CHECK(found(kDQuery, 1, 3, 6) == dqkv + (token * 64 + 8 + 6) * 2);
    CHECK(found(kDKey, 1, 3, 6) == own[2] + (token * 16 + 8 + 6) * 2);
    CHECK(found(kDValue, 1, 3, 6) == own[3] + (token * 16 + 8 + 6) * 2);
  }
}

TEST_CASE("the workspace of ragged documents grows with their slots only on Ampere and if it holds T x T scores") {
  if (skipped()) return;
  const auto fits = [](const Gpu& gpu, bool deterministic, int64_t slots, int64_t megabytes) {
    const AttentionGraphSpec spec{ragged_documents(slots, 2048, 16384), {32, 8, 128}, kBackward, deterministic};
    return refusal(gpu, spec, megabytes << 20).empty();
  };
  for (const int64_t slots : {1, 8, 64, 512}) {
    CHECK(fits(kH100, false, slots, 8));
    CHECK(fits(kB200, false, slots, 8));
    CHECK(fits(kB200, kDeterministic, slots, 8));
    CHECK(fits(kH100, kDeterministic, slots, 257 * slots));
    CHECK_FALSE(fits(kH100, kDeterministic, slots, 255 * slots));
    CHECK(fits(kA100, false, slots, 96 * slots));
    CHECK_FALSE(fits(kA100, false, slots, 16 * slots));
  }
  CHECK(refusal(kH100, {ragged_documents(64, 2048, 16384), {32, 8, 128}}, 0) == "");
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

TEST_CASE("an older cuDNN is not used for cases that it computes wrongly") {
  if (skipped()) return;
  const AttentionGraphSpec deterministic{{4, 1024}, {8, 2, 128}, kBackward, kDeterministic};
  pretended_version = 91700;
  CHECK(refusal(kH100, deterministic) == "");
  CHECK(refusal(kB200, deterministic) != "");
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    for (const bool backward : {false, kBackward}) {
      INFO(gpu.name << (backward ? ", backward" : ", forward"));
      const AttentionGraphSpec ragged{ragged_documents(4, 1024, 4096), {8, 2, 128}, backward};
      const AttentionGraphSpec dense{{4, 1024}, {8, 2, 128}, backward};
      pretended_version = 91700;
      CHECK_THAT(refusal(gpu, ragged), Catch::Contains("cuDNN 9.17.0 is older than 9.18.1"));
      CHECK(refusal(gpu, dense) == "");
      pretended_version = 91800;
      CHECK_THAT(refusal(gpu, ragged), Catch::Contains("cuDNN 9.18.0 is older than 9.18.1"));
      pretended_version = 91801;
      CHECK(refusal(gpu, ragged) == "");
    }
  }
  pretended_version = 0;
}

TEST_CASE("whether kernels can be compiled is said with a refusal") {
  CHECK_THAT(nvrtc_state(), Catch::Matches("libnvrtc[.]so[.][0-9]+ (opens|does not open.*)"));
}

TEST_CASE("a refusal is one line, fit for the log") {
  if (skipped()) return;
  // No GPU has so little shared memory, and every engine of cuDNN objects in its own words.
  const Gpu impossible = {"none", 90, 132, 1024};
  const std::string why_not = refusal(impossible, {{1, 512}, {8, 2, 128}, kBackward});
  CHECK(why_not != "");
  CHECK(why_not.find('\n') == std::string::npos);
}

TEST_CASE("cuDNN also supports separate tensors") {
  if (skipped()) return;
  for (const Gpu& gpu : {kA100, kH100, kB200}) {
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, false, false, true}) == "");
    CHECK(refusal(gpu, {{2, 1000}, {32, 8, 128}, kBackward, false, true}) == "");
  }
}
