// The statistics of a batch, from our layout into cuDNN's.
#include "cuda/pack_lse.h"

#include <numeric>

#include "backend/support.h"
#include "cuda/device.h"

using namespace tokamak;
using namespace tokamak::testing;

TEST_CASE("pack_lse: (Hq, B T) becomes (B, Hq, T)") {
  TestBackend backend;
  for (const auto& [documents, heads] :
       {std::pair<UniformDocuments, int64_t>{{3, 5}, 4}, {{1, 7}, 2}, {{4, 1}, 3}, {{2, 300}, 1}, {{7, 131}, 5}}) {
    const int64_t count = documents.tokens() * heads, length = documents.length;
    HostTensor lse(DType::kF32, {heads, documents.tokens()}), packed(DType::kF32, {count + 1});
    Values numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    lse.set(numbers);
    packed.set(Values(static_cast<size_t>(count + 1), -1.0));
    pack_lse(handle(*backend.stream), lse.view().as<float>(), packed.view().as<float>(), documents, heads);
    const Values results = packed.values();
    const double* element = results.data();
    bool same = true;
    for (int64_t b = 0; b < documents.count; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < length; ++t) {
          same = same && *element++ == static_cast<double>(h * documents.tokens() + b * length + t);
        }
      }
    }
    CHECK(same);
    CHECK(*element == -1.0);
  }
}
