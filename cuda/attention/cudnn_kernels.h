// Copies and tables around a call of cuDNN's attention.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/document_tables.h"

namespace tokamak {

// Transposes lse, from (A, B, I) -> to (B, A, I). For dense documents our lse (Hq, N) is (Hq, B, T) and becomes
// (B, Hq, T). For ragged ones cuDNN wants one row per token: (Hq, N, 1) becomes (N, Hq, 1), and back. Behind `to`,
// `zeros` elements become 0.
void pack_lse(cudaStream_t stream, const float* from, float* to, int64_t a, int64_t b, int64_t inner,
              int64_t zeros = 0);

// Copies keys, values and their gradients to separate rows, which cuDNN's ragged gradient of grouped heads needs (see
// AttentionGraphSpec), and back to the rows of qkv. (N, (Hq + 2 Hkv) D) bf16 <-> two tensors (N, Hkv D). These, and
// D bf16, multiples of 16 bytes. Behind each of the two, gather_keys writes `zero_rows` rows of zeros. By a kernel: the
// emulator has no strided cudaMemcpy.
void gather_keys(cudaStream_t stream, const Tensor& qkv, const HeadLayout& heads, void* keys, void* values,
                 int64_t zero_rows);
void scatter_keys(cudaStream_t stream, const void* keys, const void* values, const HeadLayout& heads,
                  const Tensor& qkv);

// Computes DocumentTables::tables in `memory` on the device, since the host does not read cu_seqlens. Unused slots are
// empty documents at the end of all tokens. One table of lengths serves queries and keys, so no
// document has queries without keys. (cuDNN before 9.25 fills the rows of such queries with NaN: cudnn-frontend, issue
// 943.) A graph of B slots accepts tables of any R > B entries, since it reads the first B + 1 of each row.
void fill_ragged_tables(cudaStream_t stream, const Tensor& cu_seqlens, const DocumentTableLayout& layout, void* memory);

}  // namespace tokamak
