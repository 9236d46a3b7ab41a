// manifest.json describes a data set. It is written last and renamed into place, so a directory with one is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/shard_writer.h"
#include "data/token_type.h"

namespace tokamak {

inline constexpr const char* kDatasetManifest = "manifest.json";

// The tokenizer of the ids. Data sets can be mixed, and used with a trained model, only if the hashes are equal.
struct TokenizerIdentity {
  std::string name;  // for display
  std::string hash;  // XXH3-128 of the model file
  // The model's copy in the data set's directory ("tokenizer.model"); "" if there is none. For another program's
  // files it is an absolute path.
  std::string file;

  std::string path_in(const std::string& directory) const;  // of the model, for a data set at `directory`; "": none
  bool operator==(const TokenizerIdentity&) const = default;
};

struct Manifest {
  TokenType token_type = TokenType::kUint16;
  int64_t vocab_size = 0;  // 0: unknown, of another program's files
  TokenizerIdentity tokenizer;
  int32_t eos_id = -1;            // ends every document; -1: documents have no EOS token
  int32_t bos_id = -1;            // begins every document; -1: documents have no BOS token
  std::vector<ShardInfo> shards;  // the data set is their concatenation, in this order
  int64_t text_bytes = 0;         // of all documents; 0: unknown; not part of the identity
  std::string tool;               // the writing program; not part of the identity
  std::string created;            // creation time, UTC; not part of the identity

  int64_t tokens() const;
  int64_t documents() const;
  int32_t max_token_id() const;  // -1: no tokens
  // A mean loss in nats per token of this set, as bits per byte of its text, which compares across tokenizers. Its
  // tokens include BOS and EOS, as those of the loss do. Empty if text_bytes is unknown.
  std::optional<double> bits_per_byte(double nats_per_token) const;
  // The data set's identity: XXH3-128 of the canonical JSON of everything except `text_bytes`, `tool`, `created` and
  // the names of the tokenizer. It includes the shards' hashes, so sets with equal identities have the same tokens in
  // the same order.
  std::string id() const;
};

Manifest read_manifest(const std::string& directory);  // Error(kData), naming file and key
void write_manifest(const std::string& directory, const Manifest& manifest);

}  // namespace tokamak
