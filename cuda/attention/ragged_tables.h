// The device tables of ragged documents for cuDNN: the length of each, and its offset in every tensor. Computed on the
// device from cu_seqlens, which the host does not read. Unused slots are empty documents at the end of all tokens. One
// table of lengths serves queries and keys. So none has queries without keys, whose rows cuDNN fills with NaN before
// 9.25 (cudnn-frontend, issue 943); where both are empty, no row is its own.
//
// A graph of B slots takes tables of any R > B entries, since it reads the first B + 1 of each row.
#pragma once

#include <cuda_runtime.h>

#include "backend/document_tables.h"

namespace tokamak {

// `memory` as DocumentTables::tables.
void fill_ragged_tables(cudaStream_t stream, const Tensor& cu_seqlens, const DocumentTableLayout& layout, void* memory);

}  // namespace tokamak
