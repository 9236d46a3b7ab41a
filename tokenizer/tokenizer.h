// A tokenizer of any kind: text to token ids, and ids to text. `load_tokenizer` reads one of any kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokamak {

// Encodes text. It caches words, so each thread has its own.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of `text` (UTF-8; invalid bytes become U+FFFD). Adds no BOS or EOS.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) = 0;
};

struct TokenizerInfo {
  std::string path;
  std::string hash;  // XXH3-128 of the file, 32 hexadecimal digits: the tokenizer's identity
  int64_t vocab_size = 0;
  int32_t unk_id = -1;  // each of these ids is -1 if the tokenizer has no such token
  int32_t bos_id = -1;
  int32_t eos_id = -1;
};

// Immutable and shared by threads.
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

  // piece() and decode(): Error(kData) for an id outside the vocabulary. decode() leaves out control tokens.
  std::string_view piece(int32_t id) const;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;  // the tokenizer must outlive it

 private:
  virtual std::string_view piece_at(int32_t id) const = 0;  // of an id in the vocabulary

  TokenizerInfo info_;
};

// Error(kData) if the file is damaged, or of a kind that we do not reproduce exactly.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

// Error(kData) with both hashes, unless this tokenizer made `made`, a data set or a model. A `hash` of "" is unknown
// and fits every tokenizer.
void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer);

}  // namespace tokamak
