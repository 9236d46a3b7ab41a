// Turns text into ids: splits off user-defined symbols, and hands the rest to the encoder of bpe/, which cuts it where
// no merge can cross, and merges each word once. A space stands for U+2581, so most models need no rewritten text.
#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe_word.h"
#include "tokenizer/normalize.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak {

namespace {

constexpr size_t kLongestText = size_t{1} << 29;  // bytes; positions then fit in 32 bits after normalisation

class SentencePieceEncoder final : public Encoder {
 public:
  explicit SentencePieceEncoder(const CompiledModel& model)
      : model_(model), word_(model.rules, model.unknown()), encoder_(model.rules.pieces(), word_) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) override;

 private:
  void encode_words(std::string_view text, std::vector<int32_t>& ids);
  void encode_first(std::string_view text, std::vector<int32_t>& ids);

  const CompiledModel& model_;
  BpeWord word_;
  ByteBpeEncoder encoder_;
  std::string normalized_, first_word_;
};

void SentencePieceEncoder::encode(std::string_view text, std::vector<int32_t>& ids) {
  if (text.size() > kLongestText) {
    fail(Kind::kData, str("a text of ", text.size(), " bytes is too long for the tokenizer (", kLongestText, ")"),
         "split it into documents");
  }
  if (text.empty()) return;
  const size_t first_id = ids.size();
  bool add_prefix = model_.proto.normalizer.add_dummy_prefix;
  if (model_.rewrites_spaces || text.find(kSpaceSymbol) != std::string_view::npos || !is_valid_utf8(text)) {
    text = normalize(text, add_prefix ? DummyPrefix::kAdd : DummyPrefix::kNone, normalized_);
    add_prefix = false;
  }
  const auto encode_some = [&](std::string_view words) {
    add_prefix ? encode_first(words, ids) : encode_words(words, ids);
    add_prefix = false;
  };
  for (UserSymbols::Match symbol; (symbol = model_.user_symbols.find(text)).id >= 0;) {
    encode_some(text.substr(0, symbol.begin));
    ids.push_back(symbol.id);
    text.remove_prefix(symbol.begin + static_cast<size_t>(symbol.length));
  }
  encode_some(text);
  // SentencePiece emits one <unk> for a run of unknown characters.
  if (model_.proto.trainer.byte_fallback) return;
  const int32_t unk = model_.proto.unk_id;
  const auto both_unknown = [unk](int32_t a, int32_t b) { return a == unk && b == unk; };
  ids.erase(std::unique(ids.begin() + static_cast<int64_t>(first_id), ids.end(), both_unknown), ids.end());
}

void SentencePieceEncoder::encode_words(std::string_view text, std::vector<int32_t>& ids) {
  encoder_.encode(text, model_.rules.scanner(), ids);
}

// The first word gets the dummy prefix.
void SentencePieceEncoder::encode_first(std::string_view text, std::vector<int32_t>& ids) {
  uint32_t end = 0;
  model_.rules.scanner().scan(text, 0, {&end, 1});
  first_word_ = ' ';
  first_word_ += text.substr(0, end);
  encode_words(first_word_, ids);
  encode_words(text.substr(end), ids);
}

}  // namespace

std::unique_ptr<Encoder> SentencePieceTokenizer::make_encoder() const {
  return std::make_unique<SentencePieceEncoder>(model_);
}

}  // namespace tokamak
