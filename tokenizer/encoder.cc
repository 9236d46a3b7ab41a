// Turns text into ids. It normalises the text and splits off user-defined symbols. It splits the rest into words that
// no merge can cross (BpeRules::may_join), and looks each word up in the cache before merging it.
#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe_word.h"
#include "tokenizer/normalize.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/word_cache.h"

namespace tokamak {

namespace {

constexpr size_t kLongestText = size_t{1} << 29;  // bytes; positions then fit in 32 bits after normalisation

class SentencePieceEncoder final : public Encoder {
 public:
  explicit SentencePieceEncoder(const CompiledModel& model) : model_(model), bpe_(model.rules) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) override;

 private:
  void add_word(std::string_view word, std::vector<int32_t>& ids);
  void merge_word(std::string_view word);
  void append(std::span<const int32_t> word, std::vector<int32_t>& ids) const;

  const CompiledModel& model_;
  BpeWord bpe_;
  WordCache words_;
  std::string normalized_;
  std::vector<int32_t> word_ids_;
  size_t first_ = 0;  // index of this text's first id
};

void SentencePieceEncoder::encode(std::string_view text, std::vector<int32_t>& ids) {
  if (text.size() > kLongestText) {
    fail(Kind::kData, str("a text of ", text.size(), " bytes is too long for the tokenizer (", kLongestText, ")"),
         "split it into documents");
  }
  first_ = ids.size();
  const DummyPrefix prefix = model_.proto.normalizer.add_dummy_prefix ? DummyPrefix::kAdd : DummyPrefix::kNone;
  std::string_view rest = normalize(text, prefix, normalized_);
  size_t word = 0;  // length of the first word of `rest`, as far as it was read
  char32_t previous = 0;
  const auto end_word = [&] {
    if (word == 0) return;
    add_word(rest.substr(0, word), ids);
    rest.remove_prefix(word);
    word = 0;
  };
  while (word < rest.size()) {
    const UserSymbols::Match symbol = model_.user_symbols.match(rest.substr(word));
    if (symbol.id >= 0) {
      end_word();
      ids.push_back(symbol.id);
      rest.remove_prefix(symbol.length);
      continue;
    }
    const Utf8Char c = decode_valid_utf8(rest.data() + word);
    if (word > 0 && !model_.rules.may_join(previous, c.code)) end_word();
    previous = c.code;
    word += static_cast<size_t>(c.length);
  }
  end_word();
}

void SentencePieceEncoder::add_word(std::string_view word, std::vector<int32_t>& ids) {
  if (word.size() > WordCache::kLongestWord) {
    merge_word(word);
    append(word_ids_, ids);
    return;
  }
  if (const auto known = words_.find(word)) {
    append(*known, ids);
    return;
  }
  merge_word(word);
  words_.insert(word, word_ids_);
  append(word_ids_, ids);
}

// Fills word_ids_. A character that is no piece becomes the pieces of its bytes or, in a model without them, <unk>.
void SentencePieceEncoder::merge_word(std::string_view word) {
  word_ids_.clear();
  for (const BpeWord::Part& part : bpe_.encode(word)) {
    if (model_.rules.is_piece(part.symbol)) {
      word_ids_.push_back(part.symbol);
    } else if (model_.proto.trainer.byte_fallback) {
      for (const char byte : word.substr(static_cast<size_t>(part.begin), static_cast<size_t>(part.length))) {
        word_ids_.push_back(model_.byte_ids[static_cast<unsigned char>(byte)]);
      }
    } else if (word_ids_.empty() || word_ids_.back() != model_.proto.unk_id) {
      word_ids_.push_back(model_.proto.unk_id);
    }
  }
}

// SentencePiece emits one <unk> for a run of unknown characters, even across words.
void SentencePieceEncoder::append(std::span<const int32_t> word, std::vector<int32_t>& ids) const {
  const bool unknown_goes_on =
      ids.size() > first_ && ids.back() == model_.proto.unk_id && word.front() == model_.proto.unk_id;
  ids.insert(ids.end(), word.begin() + (unknown_goes_on ? 1 : 0), word.end());
}

}  // namespace

std::unique_ptr<Encoder> SentencePieceTokenizer::make_encoder() const {
  return std::make_unique<SentencePieceEncoder>(model_);
}

}  // namespace tokamak
