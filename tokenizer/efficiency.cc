#include "tokenizer/efficiency.h"

#include "base/utf8.h"
#include "tokenizer/hf/chars.h"

namespace tokamak {

void TextSize::operator+=(const TextSize& other) {
  bytes += other.bytes;
  characters += other.characters;
  words += other.words;
}

void TokenCounts::operator+=(const TokenCounts& other) {
  tokens += other.tokens;
  parts += other.parts;
  unknown += other.unknown;
}

TextSize size_of_text(std::string_view text) {
  TextSize size{std::ssize(text), 0, 0};
  bool in_word = false;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const bool white = is_white_space(c.code);
    if (!white && !in_word) ++size.words;
    in_word = !white;
    ++size.characters;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return size;
}

EfficiencyMeter::EfficiencyMeter(const Tokenizer& tokenizer)
    : unk_id_(tokenizer.unk_id()), encoder_(tokenizer.make_encoder()) {
  is_part_.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    is_part_[static_cast<size_t>(id)] =
        id != unk_id_ && (tokenizer.kind(id) == PieceType::kByte ||
                          tokenizer.decode(std::span(&id, 1)).find(kReplacementChar) != std::string::npos);
  }
}

TokenCounts EfficiencyMeter::count(std::string_view text) {
  ids_.clear();
  encoder_->encode(text, ids_);
  TokenCounts counts{std::ssize(ids_), 0, 0};
  for (const int32_t id : ids_) {
    counts.parts += is_part_[static_cast<size_t>(id)] ? 1 : 0;
    counts.unknown += id == unk_id_ ? 1 : 0;
  }
  return counts;
}

}  // namespace tokamak
