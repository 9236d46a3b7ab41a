// Text to ids: added tokens are cut out, the rest is normalized, cut into pretokens and merged. The usual file (no
// normalizer or NFC, one pattern, byte-level) goes from the search for added tokens straight to ByteBpeEncoder.
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/hf/byte_map.h"
#include "tokenizer/hf/hf_tokenizer.h"

namespace tokamak {

namespace {

constexpr size_t kLongestHfText = size_t{1} << 29;  // bytes; positions then fit in 32 bits after normalisation

void replace_invalid_utf8(std::string_view text, std::string& valid) {
  valid.clear();
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    valid += c.code == kInvalidUtf8 ? kReplacementChar : text.substr(0, static_cast<size_t>(c.length));
    text.remove_prefix(static_cast<size_t>(c.length));
  }
}

class HfEncoder final : public Encoder {
 public:
  explicit HfEncoder(const HfTokenizer& tokenizer) : tokenizer_(tokenizer) {
    if (const CharBpe* bpe = tokenizer.char_bpe(); bpe != nullptr) {
      encoder_.emplace(bpe->pieces(), char_merger_.emplace(*bpe));
    } else {
      encoder_.emplace(*tokenizer.byte_bpe());
    }
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    if (text.size() > kLongestHfText) {
      fail(Kind::kData, str("a text of ", text.size(), " bytes is too long for the tokenizer (", kLongestHfText, ")"),
           "split it into documents");
    }
    if (!is_valid_utf8(text)) {
      replace_invalid_utf8(text, valid_);
      text = valid_;
    }
    tokenizer_.raw_tokens().cut(text, raw_spans_);
    for (const AddedTokens::Span& span : raw_spans_) {
      if (span.id >= 0) {
        ids.push_back(span.id);
      } else {
        encode_raw({text.substr(span.begin, span.end - span.begin), span.begin == 0}, ids);
      }
    }
  }

 private:
  void encode_raw(TextPart part, std::vector<int32_t>& ids) {
    part = tokenizer_.normalizer().apply(part, buffers_);
    if (part.text.empty()) return;
    if (tokenizer_.normalized_tokens().empty()) {
      encode_normalized(part, ids);
      return;
    }
    tokenizer_.normalized_tokens().cut(part.text, spans_);
    for (const AddedTokens::Span& span : spans_) {
      if (span.id >= 0) {
        ids.push_back(span.id);
      } else {
        encode_normalized({part.text.substr(span.begin, span.end - span.begin), part.at_start && span.begin == 0}, ids);
      }
    }
  }

  void encode_normalized(TextPart part, std::vector<int32_t>& ids) {
    const PreTokenizer& cutter = tokenizer_.pre_tokenizer();
    if (cutter.is_scanner_only()) {
      encode_piece(part.text, ids);
      return;
    }
    cutter.split(part, pieces_);
    for (const PieceList::One& piece : pieces_.pieces) {
      encode_piece(pieces_.text.substr(piece.begin, piece.end - piece.begin), ids);
    }
  }

  void encode_piece(std::string_view piece, std::vector<int32_t>& ids) {
    const Scanner* scanner = tokenizer_.pre_tokenizer().scanner();
    if (!char_merger_) {
      encode_pretokens(piece, scanner, ids);
    } else if (scanner == nullptr) {
      encode_characters(piece, ids);
    } else {
      std::array<uint32_t, 256> ends;
      size_t at = 0;
      while (const size_t count = scanner->scan(piece, at, ends)) {
        for (size_t i = 0; i < count; at = ends[i++]) encode_characters(piece.substr(at, ends[i] - at), ids);
      }
    }
  }

  void encode_characters(std::string_view pretoken, std::vector<int32_t>& ids) {
    if (tokenizer_.pre_tokenizer().is_byte_level()) {
      printable_.clear();
      append_printable_bytes(pretoken, printable_);
      pretoken = printable_;
    }
    encode_pretokens(pretoken, tokenizer_.char_bpe()->cuts(), ids);
  }

  void encode_pretokens(std::string_view text, const Scanner* scanner, std::vector<int32_t>& ids) {
    scanner == nullptr ? encoder_->encode_pretoken(text, ids) : encoder_->encode(text, *scanner, ids);
  }

  const HfTokenizer& tokenizer_;
  std::optional<CharMerger> char_merger_;  // of a model over characters
  std::optional<ByteBpeEncoder> encoder_;
  std::string valid_, printable_;
  std::vector<AddedTokens::Span> raw_spans_, spans_;
  Normalizer::Buffers buffers_;
  PieceList pieces_;
};

}  // namespace

std::unique_ptr<Encoder> HfTokenizer::make_encoder() const { return std::make_unique<HfEncoder>(*this); }

}  // namespace tokamak
