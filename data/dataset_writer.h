// Writes a data set: the shards, then the manifest. A document is never split across shards.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/manifest.h"

namespace tokamak {

struct DatasetWriterOptions {
  std::string directory;   // must exist
  int64_t vocab_size = 0;  // also determines the token type
  TokenizerIdentity tokenizer;
  int32_t eos_id = -1;  // recorded only: documents come with their EOS token
  int32_t bos_id = -1;
  int64_t shard_tokens = 4'000'000'000;  // a shard is closed when it has this many
  std::string tool;
};

class DatasetWriter {
 public:
  explicit DatasetWriter(DatasetWriterOptions options);

  // Error(kData) for an id outside [0, vocab_size). `text_bytes`: of the text that it was made of; 0: unknown.
  void append(std::span<const int32_t> document, int64_t text_bytes = 0);
  Manifest finish();  // Error(kData) if there are no tokens; the manifest is written last
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

 private:
  DatasetWriterOptions options_;
  Manifest manifest_;
  std::optional<ShardWriter> shard_;
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
};

}  // namespace tokamak
