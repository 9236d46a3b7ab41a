// Byte-level BPE: merges the bytes of each pretoken by rank. The ids equal those of Hugging Face's BPE model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/pretoken_merger.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak {

// The adjacent pair with the lowest rank merges first, the leftmost of equals.
struct BpeMerge {
  uint32_t rank;
  int32_t left, right, result;  // ids
};

struct ByteBpeModel {
  std::vector<std::string> pieces;  // by id: the bytes of a piece; "" if the model has no piece of this id
  std::vector<BpeMerge> merges;     // each pair once
  bool whole_pieces = false;        // a pretoken that is a piece becomes its id before any merge (`ignore_merges`)
};

struct ByteBpeTables;
class PieceTable;

// The compiled model. Immutable and shared by threads.
class ByteBpe {
 public:
  // Error(kData), naming `source`, if one of the 256 bytes is no piece, or an id is outside the vocabulary.
  ByteBpe(ByteBpeModel model, const std::string& source);
  ~ByteBpe();

  const ByteBpeTables& tables() const { return *tables_; }

 private:
  std::unique_ptr<const ByteBpeTables> tables_;
};

// Bounds of an encoder's memory. Larger caches merge less often; smaller ones stay in the processor's caches.
struct ByteBpeCaches {
  int64_t short_entries = int64_t{1} << 21;  // pretokens of at most 15 bytes, 32 bytes each; a power of two, at least 2
  int64_t long_bytes = int64_t{32} << 20;    // memory for pretokens of 16 to 96 bytes
};

// Encodes text. It caches pretokens, so each thread has its own.
class ByteBpeEncoder {
 public:
  explicit ByteBpeEncoder(const ByteBpe& bpe, const ByteBpeCaches& caches = {});  // `bpe` must outlive it
  // For another model, with the same caches. A pretoken that is not in `pieces` goes to `merger`. Both must outlive it.
  ByteBpeEncoder(const PieceTable& pieces, PretokenMerger& merger, const ByteBpeCaches& caches = {});
  ~ByteBpeEncoder();

  // Appends the ids of `text` (valid UTF-8, less than 4 GiB), cut into pretokens by `scanner`.
  void encode(std::string_view text, const Scanner& scanner, std::vector<int32_t>& ids);
  void encode_pretoken(std::string_view pretoken, std::vector<int32_t>& ids);  // any bytes

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
