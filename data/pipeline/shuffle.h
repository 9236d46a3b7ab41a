// Tokens of documents, from the order of the input into a random one, on disk. A document's place is a hash of the seed
// and its number, so that the order depends on neither workers nor memory. Parts write runs sorted by this key; a
// shard merges a range of keys from all runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset_writer.h"
#include "data/token_type.h"

namespace tokamak {

uint64_t shuffle_key(int64_t seed, size_t part, int64_t number);
bool is_held_out(uint64_t key, double fraction);  // by bits of its own, so that the order of the rest is random too

// Writes PREFIX-part-00000.run and on: as many as it takes to hold at most `memory` bytes.
//
//   "TKTOKENS", u64 documents, u64 tokens, u32 bytes of a token, u32 0, u64 key of each document ascending,
//   u64 tokens before each document, u32 text bytes of each, the tokens; all little-endian
class RunWriter {
 public:
  RunWriter(std::string prefix, TokenType type, int64_t memory)
      : prefix_(std::move(prefix)), type_(type), memory_(memory) {}

  void add(uint64_t key, std::span<const int32_t> ids, int64_t text_bytes);
  void finish();

 private:
  struct Entry {
    uint64_t key, begin;  // in ids_
    uint32_t tokens, text_bytes;
  };
  void flush();

  std::string prefix_;
  TokenType type_;
  int64_t memory_;
  std::vector<Entry> entries_;
  std::vector<int32_t> ids_;
  size_t runs_ = 0;
};

// A run on disk, open only while it is read. Error(kData) if it is damaged.
class RunFile {
 public:
  explicit RunFile(const std::string& path);
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

 private:
  friend class ShardMerge;
  std::string path_;
  int64_t documents_ = 0, tokens_ = 0, token_bytes_ = 0;
};

// Keys [first, last].
struct KeySpan {
  uint64_t first = 0, last = UINT64_MAX;
};

// Span `index` of `count` that cover all keys, of nearly equal sizes.
KeySpan key_span(uint64_t index, uint64_t count);

// Appends the documents of a span in the order of their keys; holds at most about `memory` bytes.
void merge_runs(std::span<const RunFile> runs, KeySpan span, int64_t memory, DatasetWriter& writer);

}  // namespace tokamak
