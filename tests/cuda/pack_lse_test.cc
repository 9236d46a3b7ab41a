// pack_lse() rearranges lse from our layout into cuDNN's and back.
#include "cuda/attention/cudnn_kernels.h"

#include <numeric>

#include "backend/support.h"
#include "cuda/device.h"

using namespace tokamak;
using namespace tokamak::testing;

TEST_CASE("pack_lse: (A, B, I) becomes (B, A, I), with zeros behind where they are asked for") {
  TestBackend backend;
  using Sizes = std::array<int64_t, 3>;
  for (const auto& [heads, documents, length] :
       {Sizes{4, 3, 5}, Sizes{2, 1, 7}, Sizes{3, 4, 1}, Sizes{1, 2, 300}, Sizes{5, 7, 131}, Sizes{300, 2, 1}}) {
    const int64_t count = documents * length * heads;
    Values numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const HostTensor lse(DType::kF32, {count}, numbers);
    const int64_t zeros = documents == 2 ? 259 : 0;
    const HostTensor packed(DType::kF32, {count + zeros + 1}, Values(static_cast<size_t>(count + zeros + 1), -1.0));
    pack_lse(handle(*backend.stream), lse.view().as<float>(), packed.view().as<float>(), heads, documents, length,
             zeros);
    const Values results = packed.values();
    const double* element = results.data();
    bool same = true;
    for (int64_t b = 0; b < documents; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < length; ++t) {
          same = same && *element++ == static_cast<double>((h * documents + b) * length + t);
        }
      }
    }
    CHECK(same);
    CHECK(std::count(element, element + zeros, 0.0) == zeros);
    CHECK(element[zeros] == -1.0);
  }
}
