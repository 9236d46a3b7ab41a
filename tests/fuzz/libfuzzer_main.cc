// libFuzzer's program. TOKAMAK_FUZZ names the target (targets.cc); without it, the program lists them.
// scripts/dev/fuzz.sh builds and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "fuzz/targets.h"

namespace {

const tokamak::fuzz::Target& target() {
  static const tokamak::fuzz::Target* const found = [] {
    const char* name = std::getenv("TOKAMAK_FUZZ");
    return tokamak::fuzz::find_target(name == nullptr ? "" : name);
  }();
  tokamak::fuzz::require(found != nullptr);
  return *found;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  if (std::getenv("TOKAMAK_FUZZ") != nullptr) return 0;
  for (const tokamak::fuzz::Target& one : tokamak::fuzz::targets()) std::puts(one.name);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tokamak::fuzz::Verdict;
  // A first input that is valid, so that a search without a corpus does not begin at nothing.
  static const bool started = target().read(target().sample()) == Verdict::kAccepted;
  tokamak::fuzz::require(started);
  target().read({reinterpret_cast<const char*>(data), size});
  return 0;
}

// One mutation in sixteen starts from the sample; one in 4096 nests it as deep as the input may be long.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  static const std::string sample = target().sample();
  if (seed % 16 == 0 && sample.size() <= max_size) {
    std::memcpy(data, sample.data(), sample.size());
    size = sample.size();
  }
  if (seed % 4096 == 1 && size > 0 && max_size > 2 * size) {
    const size_t at = seed / 4096 % size;
    const size_t depth = max_size - size;
    std::memmove(data + at + depth, data + at, size - at);
    std::memset(data + at, (seed >> 24) % 2 == 0 ? '[' : '{', depth);
    return max_size;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
