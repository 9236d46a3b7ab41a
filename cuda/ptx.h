// Instructions without a C++ equivalent: tensor cores, asynchronous copies, packed conversions. The only file with
// inline assembly. All except the conversions are collective over the 32 lanes of a warp. (PTX ISA 8.x, section names.)
#pragma once

#include <cstdint>

namespace tokamak::ptx {

// low in bits 0..15, high in 16..31, each rounded to nearest even (cvt.rn.bf16x2.f32).
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

// 2^x, 2 units in the last place (ex2.approx.ftz); 2^-inf = 0.
__device__ inline float exp2_approx(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

// d += a b, a (16, 16) and b (16, 8) bf16, d (16, 8) f32 (mma.sync.aligned.m16n8k16). With g = lane / 4, t = lane % 4:
// a[0]: (g, 2t..2t+1), a[1]: (g+8, 2t..), a[2]: (g, 2t+8..), a[3]: (g+8, 2t+8..);  b[0]: rows 2t.. of column g,
// b[1]: rows 2t+8.. of column g;  d[0..1]: (g, 2t..2t+1), d[2..3]: (g+8, 2t..2t+1).
__device__ inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Loads four 8 x 8 matrices of bf16 from shared memory (ldmatrix.x4). Lane l gives the address of row l % 8 of matrix
// l / 8: 16 bytes, aligned. out[i] holds elements (lane / 4, 2 (lane % 4)) and the next one of matrix i.
__device__ inline void load_matrices(uint32_t (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// As load_matrices, transposed: out[i] holds elements (2 (lane % 4).., lane / 4) of matrix i (ldmatrix.x4.trans).
__device__ inline void load_matrices_transposed(uint32_t (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// 16 bytes from global to shared memory, asynchronously, bypassing L1; zeros if `valid` is false
// (cp.async.cg). They are visible to this thread after wait_for_copies<n>, with at most n later commits pending.
__device__ inline void copy_async(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}
// copy_async for 4 bytes, through L1 (cp.async.ca).
__device__ inline void copy_word_async(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kYounger>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kYounger) : "memory");
}

}  // namespace tokamak::ptx
