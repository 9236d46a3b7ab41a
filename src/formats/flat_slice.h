// Fills a slice of a unit's flat buffer weight by weight, from any source: a checkpoint of any number of ranks, or a
// Hugging Face model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tensor/param_table.h"

namespace tokamak {

// Fills `out` with elements [first, first + out.size()) of the flattened weight `name`.
using ReadParam = std::function<void(const std::string& name, int64_t first, std::span<float> out)>;

// Elements [begin, begin + out.size()) of the unit's flat buffer; padding becomes zero.
void read_flat(const Unit& unit, int64_t begin, std::span<float> out, const ReadParam& read);

}  // namespace tokamak
