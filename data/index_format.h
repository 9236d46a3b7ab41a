// The index of a shard: Megatron-LM's IndexedDataset, version 1, little-endian and without padding.
//
//   idx        := magic version type S D length[S] pointer[S] first[D]
//   magic      := "MMIDIDX\0\0"                    9 bytes
//   version    := u64 = 1
//   type       := u8                               1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16; ours are 4 and 8. Refused: 6
//                                                  f64, 7 f32
//   S, D       := u64                              sequences; documents + 1
//   length[i]  := i32                              tokens of sequence i; zero is legal
//   pointer[i] := i64                              its byte offset in the .bin
//   first[d]   := i64                              first sequence of document d; first[0] = 0, first[D - 1] = S
//
// The .bin is the concatenation of all sequences' tokens, and nothing else. Our shards have one sequence per document
// (D = S + 1), and the sequences fill the .bin without gaps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/element_type.h"

namespace tokamak {

inline constexpr int64_t kIndexHeaderBytes = 34;

struct IndexHeader {
  TokenElement type = TokenElement::kUint16;
  int64_t sequences = 0;         // S
  int64_t document_entries = 0;  // D

  int64_t lengths_at() const { return kIndexHeaderBytes; }
  int64_t pointers_at() const { return lengths_at() + 4 * sequences; }
  int64_t documents_at() const { return pointers_at() + 8 * sequences; }
  int64_t modes_at() const { return file_bytes(); }  // of multimodal data only
  int64_t file_bytes() const { return documents_at() + 8 * document_entries; }
};

std::array<std::byte, kIndexHeaderBytes> encode_index_header(const IndexHeader& header);

// Error(kData), naming `path`, if the bytes are not a supported header of an index of `file_bytes` bytes (with or
// without the S trailing mode bytes of multimodal data). `head` may be shorter than a header.
IndexHeader parse_index_header(std::span<const std::byte> head, int64_t file_bytes, const std::string& path);

}  // namespace tokamak
