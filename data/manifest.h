// manifest.json: what a data set is. It is written last and by rename, so a directory that has one is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/shard_writer.h"
#include "data/token_type.h"

namespace tokamak {

inline constexpr const char* kDatasetManifest = "manifest.json";

// Which tokenizer made the ids. Two data sets may be mixed, and a model trained on, only where the hashes are equal.
struct TokenizerIdentity {
  std::string name;  // for people
  std::string hash;  // XXH3-128 of the model file
  std::string file;  // the model's copy in the data set's directory ("tokenizer.model"); "" if there is none

  bool operator==(const TokenizerIdentity&) const = default;
};

struct Manifest {
  TokenType token_type = TokenType::kUint16;
  int64_t vocab_size = 0;
  TokenizerIdentity tokenizer;
  int32_t eos_id = -1;            // ends every document; -1: documents have no EOS token
  int32_t bos_id = -1;            // begins every document; -1: documents have no BOS token
  std::vector<ShardInfo> shards;  // the data set is their concatenation, in this order
  std::string tool;               // who wrote it; not part of the identity
  std::string created;            // when, UTC; not part of the identity

  int64_t tokens() const;
  int64_t documents() const;
  int32_t max_token_id() const;  // -1: no tokens
  // The data set's identity: XXH3-128 of the canonical JSON of everything but `tool`, `created` and the names of the
  // tokenizer. As the shards' hashes are in it, two sets with one identity have the same tokens in the same order.
  std::string id() const;
};

Manifest read_manifest(const std::string& directory);  // Error(kData), naming file and key
void write_manifest(const std::string& directory, const Manifest& manifest);

}  // namespace tokamak
