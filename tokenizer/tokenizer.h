// A tokenizer of any kind: text to token ids, and ids to text. `load_tokenizer` reads one of any kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/piece_type.h"

namespace tokamak {

// Encodes text. It caches words, so each thread has its own.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of `text` (UTF-8; invalid bytes become U+FFFD). Adds no BOS or EOS.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) = 0;
};

// Decodes ids one at a time. The concatenation of all results is decode() of all ids.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  virtual std::string push(int32_t id) = 0;  // the text that became final with this id
  virtual std::string finish() = 0;          // the rest
};

// A special token that is written in a text becomes its id, or is encoded as ordinary text.
enum class SpecialsPolicy { kIds, kText };

struct TokenizerInfo {
  std::string path;
  // The tokenizer's identity: XXH3-128 of its file, 32 hexadecimal digits. It covers the ids of texts. BOS and EOS may
  // be named by other files, and are recorded with each data set. "-text" follows if the policy is kText.
  std::string hash;
  int64_t vocab_size = 0;
  int32_t unk_id = -1;  // each of these ids is -1 if the tokenizer has no such token
  int32_t bos_id = -1;
  int32_t eos_id = -1;
};

// Immutable once load_tokenizer() has returned it, and shared by threads.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerInfo info) : info_(std::move(info)) {}
  virtual ~Tokenizer() = default;

  const std::string& path() const { return info_.path; }
  const std::string& hash() const { return info_.hash; }
  int64_t vocab_size() const { return info_.vocab_size; }
  int32_t unk_id() const { return info_.unk_id; }
  int32_t bos_id() const { return info_.bos_id; }
  int32_t eos_id() const { return info_.eos_id; }

  // piece(), kind() and decode(): Error(kData) for an id outside the vocabulary. decode() leaves out control tokens.
  // piece() is as the file writes it; "" for an unused id.
  std::string_view piece(int32_t id) const;
  PieceType kind(int32_t id) const;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // The tokenizer must outlive its encoders and decoders.
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;
  virtual std::unique_ptr<StreamDecoder> make_stream_decoder() const = 0;

  // Writes its files, which load_tokenizer() reads again. Returns the name of the main one.
  virtual std::string copy_files(const std::string& directory) const = 0;
  // "name", "value" pairs for people, in order: what `tokamak tokenizer inspect` prints besides path, hash and ids.
  virtual std::vector<std::pair<std::string, std::string>> settings() const = 0;
  virtual double score(int32_t) const { return 0; }  // of a piece, in kinds that have scores

  void set_eos(std::string_view piece);  // before it is shared; Error(kData) if there is no such piece

 private:
  void expect_in_vocabulary(int32_t id) const;
  virtual std::string_view piece_at(int32_t id) const = 0;  // of an id in the vocabulary
  virtual PieceType kind_at(int32_t id) const = 0;

  TokenizerInfo info_;
};

struct TokenizerChoices {
  SpecialsPolicy specials = SpecialsPolicy::kIds;
  std::string eos;  // the token that ends documents; "": as the tokenizer's files say
};

// Reads a SentencePiece model, a tokenizer.json, a tekken.json, a .tiktoken file as PATH#PRESET, or the first of these
// in a directory. Error(kData) if the file is damaged, or of a kind that we do not reproduce exactly.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const TokenizerChoices& choices = {});

// The tokenizer's file in a directory, by the names that copy_files() writes; "" if there is none. A tokenizer.json
// beside a tokenizer.model is often made from it, so it is taken only if it has more tokens.
std::string find_tokenizer(const std::string& directory);
// The names of that file and of what lies beside it and belongs to it.
std::vector<std::string> tokenizer_files(const std::string& path);

// An identity names its policy.
SpecialsPolicy specials_policy_of(std::string_view hash);
std::string hash_with_policy(std::string hash, SpecialsPolicy specials);

// Error(kData) with both hashes, unless this tokenizer made `made`, a data set or a model. A `hash` of "" is unknown
// and fits every tokenizer. The policies need not be the same: the vocabulary is.
void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer);

}  // namespace tokamak
