// The angles of the rotary embedding, computed once on the host for both backends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_config.h"

namespace tokamak {

// With D = head_size(), i < D/2 and theta = rope_theta, w_i = theta^(-2 i / D) (Su et al. 2021, eq. 15). Then, as in
// transformers' modeling_rope_utils.py, with f = factor and L = original_max_position_embeddings:
//   linear   w_i / f
//   dynamic  w_i with theta (f n / M - (f - 1))^(D / (D - 2)) as theta; M = max_position_embeddings, n = max(length, M)
//   yarn     w_i (1 - r_i) + w_i / f r_i; r rises from 0 to 1 between the indices whose frequencies make beta_fast and
//            beta_slow rotations in L (Peng et al. 2023, rounded as in their code)
//   llama3   w_i where 2 pi / w_i < L / high_freq_factor, w_i / f where it is > L / low_freq_factor, between them
//            w_i s + w_i / f (1 - s) with s = (L w_i / (2 pi) - low_freq_factor) / (high_freq_factor - low_freq_factor)
struct RopeFrequencies {
  std::vector<double> w;        // (D/2)
  double attention_factor = 1;  // multiplies cosines and sines; differs from 1 for yarn only
};

// `length` is that of the current sequence, and matters for dynamic only.
RopeFrequencies rope_frequencies(const ModelConfig& config, int64_t length);

// The angles of one position: cos(p w_i) for i < D/2, then sin(p w_i), times attention_factor.              row (D)
void write_rope_row(const RopeFrequencies& frequencies, int64_t position, std::span<float> row);

// Row p, p < positions: cos(p w_i) for i < D/2, then sin(p w_i), times attention_factor, for a sequence of `length`.
// Angles are computed in double and rounded once, so long contexts lose no precision.      (positions, D)
std::vector<float> make_rope_table(const ModelConfig& config, int64_t positions, int64_t length);

}  // namespace tokamak
