#include "formats/flat_slice.h"

#include <algorithm>

#include "tensor/unit_layout.h"

namespace tokamak {

void read_flat(const Unit& unit, int64_t begin, std::span<float> out, const ReadParam& read) {
  std::fill(out.begin(), out.end(), 0.0f);
  const int64_t end = begin + std::ssize(out);
  for (const FlatParam& flat : flat_params(unit)) {
    const int64_t first = std::max(flat.begin, begin);
    const int64_t last = std::min(flat.end, end);
    if (first >= last) continue;
    read(flat.param->name, first - flat.begin,
         out.subspan(static_cast<size_t>(first - begin), static_cast<size_t>(last - first)));
  }
}

}  // namespace tokamak
