#include "data/prepare/text_encoder.h"

#include <filesystem>
#include <memory>

namespace tokamak {

TextEncoder text_encoder(const Tokenizer& tokenizer) {
  TextEncoder out;
  out.name = std::filesystem::path(tokenizer.path()).filename().string();
  out.hash = tokenizer.hash();
  out.file = tokenizer.path();
  out.vocab_size = tokenizer.vocab_size();
  out.eos_id = tokenizer.eos_id();
  out.bos_id = tokenizer.bos_id();
  out.make = [&tokenizer]() -> TextEncoder::Encode {
    // std::function requires a copyable target, which an Encoder is not: a copy creates a new Encoder.
    struct Copyable {
      const Tokenizer& tokenizer;
      Encoder encoder;
      explicit Copyable(const Tokenizer& t) : tokenizer(t), encoder(t) {}
      Copyable(const Copyable& other) : Copyable(other.tokenizer) {}
      void operator()(std::string_view text, std::vector<int32_t>& ids) { encoder.encode(text, ids); }
    };
    return Copyable(tokenizer);
  };
  return out;
}

}  // namespace tokamak
