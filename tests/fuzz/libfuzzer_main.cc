// One libFuzzer program per target (TOKAMAK_FUZZ_TARGET). By hand:
//   cmake -S . -B build-fuzz -DTOKAMAK_FUZZ=ON -DTOKAMAK_CUDA=OFF -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang
//   cmake --build build-fuzz --target fuzz_safetensors fuzz_index fuzz_hf_config fuzz_gguf
//   build-fuzz/tests/fuzz/fuzz_gguf -max_total_time=300 CORPUS_DIRECTORY
#include <cstddef>
#include <cstdint>

#include "fuzz/samples.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak;
  // A first input that is valid, so that a search without a corpus does not begin at nothing.
  static const bool started = fuzz::TOKAMAK_FUZZ_TARGET(fuzz::TOKAMAK_FUZZ_SAMPLE()) == fuzz::Verdict::kAccepted;
  fuzz::require(started);
  fuzz::TOKAMAK_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

// One mutation in sixteen starts from the sample.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  static const std::string sample = tokamak::fuzz::TOKAMAK_FUZZ_SAMPLE();
  if (seed % 16 == 0 && sample.size() <= max_size) {
    std::memcpy(data, sample.data(), sample.size());
    size = sample.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
