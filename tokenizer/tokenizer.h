// A SentencePiece BPE model with our own encoder: the same ids as SentencePiece, several times faster. Models that we
// cannot reproduce exactly (unigram, a normaliser that rewrites text) are refused by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class Tokenizer {
 public:
  // Reads a SentencePiece ModelProto (tokenizer.model). Error(kData) if it is damaged or of an unsupported kind.
  static Tokenizer load(const std::string& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  int64_t vocab_size() const;
  int32_t unk_id() const;  // -1 if the model has none, likewise below
  int32_t bos_id() const;
  int32_t eos_id() const;
  const std::string& hash() const;  // XXH3-128 of the model file, 32 hexadecimal digits: the tokenizer's identity
  const std::string& path() const;
  std::string_view piece(int32_t id) const;

  std::string decode(std::span<const int32_t> ids) const;  // drops control pieces (<s>, </s>), joins byte pieces

 private:
  friend class Encoder;
  struct Model;
  explicit Tokenizer(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

// Error(kData) with both hashes, unless the data or model `made` was made with this tokenizer. A `hash` of "" is unknown,
// and fits each.
void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer);

// Encodes text with a tokenizer that must outlive it. Has a cache of words, so use one Encoder per thread.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  // Appends the ids of `text` (UTF-8; invalid bytes become U+FFFD, as in SentencePiece); no BOS or EOS is added.
  void encode(std::string_view text, std::vector<int32_t>& ids);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace tokamak
