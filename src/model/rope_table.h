// The angles of the rotary embedding, computed once on the host for both backends.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

// Row p, p < positions: cos(p w_i) for i < D/2, then sin(p w_i), with w_i = theta^(-2 i / D) (Su et al. 2021, eq. 15).
// Angles are formed in double and rounded once, so that long contexts lose nothing.      (positions, D)
std::vector<float> make_rope_table(int64_t positions, int64_t head_dim, double theta);

}  // namespace tokamak
