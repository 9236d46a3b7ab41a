// Writes a data set: the shards, then the manifest. A document is never split across shards.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/manifest.h"

namespace tokamak {

std::string part_name(size_t number);  // "part-00000"

class DatasetWriter {
 public:
  // `directory` must exist. `head` is the manifest without its shards; its vocabulary determines the token type, and
  // its EOS and BOS ids are recorded only. A shard is closed when it has `shard_tokens`.
  DatasetWriter(std::string directory, Manifest head, int64_t shard_tokens);

  // Error(kData) for an id outside [0, vocab_size). `text_bytes`: size of the text that became these ids; 0: unknown.
  void append(std::span<const int32_t> document, int64_t text_bytes = 0);
  // append() in pieces, for documents larger than memory.
  void add(std::span<const int32_t> ids);
  void end_document();
  Manifest finish();  // Error(kData) if there are no tokens; the manifest is written last
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

 private:
  void open_shard();  // of the next token or document

  std::string directory_;
  Manifest manifest_;
  int64_t shard_tokens_;
  std::optional<ShardWriter> shard_;
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
  bool in_document_ = false;
};

}  // namespace tokamak
