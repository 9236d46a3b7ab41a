// AdamW (Loshchilov and Hutter 2019): f32 masters, f32 or bf16 moments. Norm weights and biases never decay; the
// embedding and the head decay unless configured otherwise.
// bf16 moments are rounded at random (ops.h). An element draws by its index in the flat units of the whole model, so
// ranks, stages and resumes change no bit. Padding has no index and is not updated.
#pragma once

#include <cstdint>
#include <memory>

#include "optim/optimizer.h"

namespace tokamak {

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options, uint64_t seed);

}  // namespace tokamak
