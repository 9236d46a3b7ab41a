// Writes one shard: NAME.bin, NAME.idx (index_format.h) and NAME.sum (block_sums.h). Document lengths go to a temporary
// file, so memory does not grow with the number of documents. The shard is complete only after finish() returns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/block_sums.h"
#include "data/token_type.h"

namespace tokamak {

// The manifest entry of a shard.
struct ShardInfo {
  std::string name;  // "part-00000"
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t bytes = 0;          // of the .bin
  int64_t index_bytes = 0;    // of the .idx
  int32_t max_token_id = -1;  // -1: no tokens
  std::string hash;           // XXH3-128 of the .bin
  std::string index_hash;     // XXH3-128 of the .idx

  bool operator==(const ShardInfo&) const = default;
};

class ShardWriter {
 public:
  ShardWriter(const std::string& directory, const std::string& name, TokenType type);

  void append(std::span<const int32_t> document);  // ids in [0, 65535] for kUint16, [0, 2^31) for kInt32; may be empty
  void add(std::span<const int32_t> ids);          // append() in pieces, for documents larger than memory
  void end_document();
  ShardInfo finish();  // writes index and checksums; all three files are on disk
  int64_t tokens() const { return info_.tokens; }

 private:
  void put_ids(std::span<const int32_t> ids);
  void flush();
  void write_index();

  std::string prefix_;
  TokenType type_;
  ShardInfo info_;
  int64_t document_tokens_ = 0;  // of the document that is not ended
  OutputFile bin_;
  OutputFile lengths_;                 // i32 for each document; removed by finish()
  std::vector<std::byte> bin_buffer_;  // bytes to write, the first bin_filled_
  size_t bin_filled_ = 0;
  std::vector<std::byte> length_buffer_;
  BlockHasher bin_hasher_;
  BlockHasher idx_hasher_;
};

}  // namespace tokamak
