// A library that NVTX loads in place of a profiler (NVTX_INJECTION64_PATH). It writes the begin and end of each range
// to the file TOKAMAK_NVTX_NOTES.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

void note(const char* text) {
  static std::FILE* const file = std::fopen(std::getenv("TOKAMAK_NVTX_NOTES"), "w");
  std::fputs(text, file);
  std::fputs("\n", file);
  std::fflush(file);
}

int NVTX_API push(const char* message) {
  note(message);
  return 0;
}

int NVTX_API pop() {
  note("end");
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) != 1) return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
