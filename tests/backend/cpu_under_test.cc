#include <cstdlib>

#include "backend/under_test.h"

namespace tokamak::testing {

Backend make_backend_under_test() { return make_cpu_backend(); }

std::byte* allocate_under_test(size_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
}

void release_under_test(std::byte* memory) { std::free(memory); }

}  // namespace tokamak::testing
