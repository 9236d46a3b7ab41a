// Replaces cuda/ptx.h: each instruction by its definition in the PTX ISA.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/bf16.h"

namespace tokamak::ptx {

inline uint32_t pack_bf16(float low, float high) {
  return static_cast<uint32_t>(bf16(low).bits) | static_cast<uint32_t>(bf16(high).bits) << 16;
}

inline float exp2_approx(float x) { return std::exp2(x); }

inline float half_of(uint32_t pair, int which) {
  return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  std::memcpy(emulator::slot(emulator::lane()), mine, sizeof(mine));
  emulator::sync_warp();
  const auto register_of = [](int lane, int index) {
    uint32_t out;
    std::memcpy(&out, emulator::slot(lane) + 4 * index, sizeof(out));
    return out;
  };
  const int g = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int k = 0; k < 16; ++k) {
    const int owner = k % 8 / 2, upper = k / 8;  // lane in the group of four, second half of the depth
    for (int i = 0; i < 4; ++i) {
      const int row = g + 8 * (i / 2), column = 2 * t + i % 2;
      const float x = half_of(register_of(row % 8 * 4 + owner, row / 8 + 2 * upper), k % 2);
      const float y = half_of(register_of(column * 4 + owner, 4 + upper), k % 2);
      d[i] += x * y;
    }
  }
  emulator::sync_warp();
}

inline void load_matrices_as(uint32_t (&out)[4], const void* row, bool transposed) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) std::abort();  // the instruction asks for it
  std::memcpy(emulator::slot(emulator::lane()), &row, sizeof(row));
  emulator::sync_warp();
  const auto element = [](int matrix, int r, int c) {
    const unsigned char* address;
    std::memcpy(&address, emulator::slot(8 * matrix + r), sizeof(address));
    uint16_t value;
    std::memcpy(&value, address + 2 * c, sizeof(value));
    return static_cast<uint32_t>(value);
  };
  const int r = emulator::lane() / 4, c = 2 * (emulator::lane() % 4);
  for (int i = 0; i < 4; ++i) {
    out[i] = transposed ? element(i, c, r) | element(i, c + 1, r) << 16 : element(i, r, c) | element(i, r, c + 1) << 16;
  }
  emulator::sync_warp();
}
inline void load_matrices(uint32_t (&out)[4], const void* row) { load_matrices_as(out, row, false); }
inline void load_matrices_transposed(uint32_t (&out)[4], const void* row) { load_matrices_as(out, row, true); }

inline void copy_async(void* shared, const void* global, bool valid) {
  emulator::copy_async(shared, global, 16, valid);
}
inline void copy_word_async(void* shared, const void* global, bool valid) {
  emulator::copy_async(shared, global, 4, valid);
}
inline void commit_copies() { emulator::commit_copies(); }
template <int kYounger>
inline void wait_for_copies() {
  emulator::wait_for_copies(kYounger);
}

}  // namespace tokamak::ptx
