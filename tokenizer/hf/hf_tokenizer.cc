#include "tokenizer/hf/hf_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "tokenizer/hf/byte_map.h"
#include "tokenizer/hf/special_ids.h"
#include "tokenizer/hf/tiktoken_file.h"

namespace tokamak {

namespace {

TokenizerInfo info_of(const TokenizerSpec& spec, SpecialsPolicy specials) {
  TokenizerInfo info;
  info.path = spec.path;
  info.hash = hash_with_policy(spec.hash, specials);
  info.vocab_size = spec.vocab_size();
  info.unk_id = spec.unk_id;
  info.bos_id = spec.bos_id;
  info.eos_id = spec.eos_id;
  // A template that puts one id before and one after a text says what they are.
  if (info.bos_id < 0 && spec.prefix_ids.size() == 1) info.bos_id = spec.prefix_ids[0];
  if (info.eos_id < 0 && spec.suffix_ids.size() == 1) info.eos_id = spec.suffix_ids[0];
  return info;
}

std::vector<int32_t> index_by_id(const TokenizerSpec& spec) {
  std::vector<int32_t> index(static_cast<size_t>(spec.vocab_size()), -1);
  for (size_t i = 0; i < spec.added.size(); ++i) index[static_cast<size_t>(spec.added[i].id)] = static_cast<int32_t>(i);
  return index;
}

// The model over bytes; nothing if it has a byte without a piece, or what only CharBpe does.
std::optional<ByteBpeModel> byte_model(const BpeSpec& spec) {
  if (!spec.continuing_subword_prefix.empty() || !spec.end_of_word_suffix.empty()) return std::nullopt;
  ByteBpeModel model;
  model.whole_pieces = spec.whole_pieces;
  model.pieces.resize(static_cast<size_t>(spec.pieces.ids()));
  int bytes = 0;
  for (int32_t id = 0; id < spec.pieces.ids(); ++id) {
    // A piece with other characters cannot occur in text that is written in these.
    std::optional<std::string> piece = bytes_of_printable(spec.pieces[id]);
    if (!piece) continue;
    if (piece->size() == 1) ++bytes;
    model.pieces[static_cast<size_t>(id)] = std::move(*piece);
  }
  if (bytes < 256) return std::nullopt;
  const auto has = [&](int32_t id) { return !model.pieces[static_cast<size_t>(id)].empty(); };
  model.merges.reserve(spec.merges.size());
  for (const BpeMerge& merge : spec.merges) {
    if (has(merge.left) && has(merge.right)) model.merges.push_back(merge);
  }
  return model;
}

class HfStream final : public StreamDecoder {
 public:
  explicit HfStream(const HfTokenizer& tokenizer) : tokenizer_(tokenizer), chain_(tokenizer.spec().decoder) {}
  std::string push(int32_t id) override {
    static_cast<void>(tokenizer_.piece(id));  // refuses an id outside the vocabulary
    const std::optional<std::string_view> piece = tokenizer_.decoded_piece(id);
    return piece ? chain_.push(*piece) : "";
  }
  std::string finish() override { return chain_.finish(); }

 private:
  const HfTokenizer& tokenizer_;
  DecodeChain chain_;
};

const char* yes_or_no(bool value) { return value ? "true" : "false"; }

}  // namespace

HfTokenizer::HfTokenizer(TokenizerSpec spec, SpecialsPolicy specials)
    : Tokenizer(info_of(spec, specials)),
      spec_(std::move(spec)),
      specials_(specials),
      added_index_(index_by_id(spec_)),
      normalizer_(spec_.normalizer, spec_.path),
      raw_tokens_(added_that_are(false), specials),
      normalized_tokens_(added_that_are(true), specials),
      decoded_added_(decoded_added()),
      pre_tokenizer_(spec_.pre_tokenizer, spec_.path) {
  compile_model();
}

// The tokens to search for in raw or in normalized text. The latter are normalized themselves.
std::vector<AddedToken> HfTokenizer::added_that_are(bool normalized) const {
  std::vector<AddedToken> tokens;
  Normalizer::Buffers buffers;
  for (const AddedToken& token : spec_.added) {
    if (token.normalized != normalized || !token.in_text) continue;
    tokens.push_back(token);
    if (!normalized) continue;
    tokens.back().content = normalizer_.apply({token.content, true}, buffers).text;
    const bool empty = tokens.back().content.empty();
    if (empty || std::any_of(tokens.begin(), tokens.end() - 1,
                             [&](const AddedToken& other) { return other.content == tokens.back().content; })) {
      fail(Kind::kData, str(spec_.path, ": added_tokens: '", printable(token.content), "', normalized, is ",
                            empty ? "empty" : "another token's content", ", which is not supported"));
    }
  }
  return tokens;
}

void HfTokenizer::compile_model() {
  if (pre_tokenizer_.is_byte_level()) {
    if (std::optional<ByteBpeModel> model = byte_model(spec_.model)) {
      byte_bpe_ = std::make_unique<ByteBpe>(std::move(*model), spec_.path);
      return;
    }
  }
  char_bpe_ = std::make_unique<CharBpe>(spec_.model, spec_.path);
}

std::string_view HfTokenizer::piece_at(int32_t id) const {
  const int32_t added = added_index_[static_cast<size_t>(id)];
  return added >= 0 ? std::string_view(spec_.added[static_cast<size_t>(added)].content) : spec_.model.pieces[id];
}

PieceType HfTokenizer::kind_at(int32_t id) const {
  if (id == spec_.model.unk_id && byte_bpe_ == nullptr) return PieceType::kUnknown;
  if (const int32_t added = added_index_[static_cast<size_t>(id)]; added >= 0) {
    return spec_.added[static_cast<size_t>(added)].special ? PieceType::kControl : PieceType::kUserDefined;
  }
  if (!spec_.model.pieces.has(id)) return PieceType::kUnused;
  if (spec_.model.byte_fallback && char_bpe_ != nullptr) {
    for (int byte = 0; byte < 256; ++byte) {
      if (char_bpe_->byte_id(static_cast<unsigned char>(byte)) == id) return PieceType::kByte;
    }
  }
  return PieceType::kNormal;
}

std::optional<std::string_view> HfTokenizer::decoded_piece(int32_t id) const {
  if (const int32_t added = added_index_[static_cast<size_t>(id)]; added >= 0) {
    const std::optional<std::string>& text = decoded_added_[static_cast<size_t>(added)];
    return text ? std::optional<std::string_view>(*text) : std::nullopt;
  }
  return spec_.model.pieces.has(id) ? std::optional<std::string_view>(spec_.model.pieces[id]) : std::nullopt;
}

// Hugging Face's library decodes a `normalized` token to its normalized content, and then hides what equals the content
// of a special token. So a special token that normalization changes is shown.
std::vector<std::optional<std::string>> HfTokenizer::decoded_added() const {
  VocabTable special;
  for (const AddedToken& token : spec_.added) {
    if (token.special) special.add(token.content, token.id);
  }
  std::vector<std::optional<std::string>> texts;
  Normalizer::Buffers buffers;
  for (const AddedToken& token : spec_.added) {
    std::string text = token.content;
    if (token.normalized) text = normalizer_.apply({token.content, true}, buffers).text;
    texts.push_back(special.find(text) < 0 ? std::optional<std::string>(std::move(text)) : std::nullopt);
  }
  return texts;
}

std::string HfTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  HfStream stream(*this);
  for (const int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

std::unique_ptr<StreamDecoder> HfTokenizer::make_stream_decoder() const { return std::make_unique<HfStream>(*this); }

// An EOS token that was chosen, because no file says it, is written where the next reader finds it.
std::string HfTokenizer::copy_files(const std::string& directory) const {
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text_atomically(directory + "/" + name, text, Kind::kData);
  };
  const auto copy = [&](const std::string& from, const std::string& name) {
    write(name, read_text(from, Kind::kData));
  };
  if (!spec_.preset.empty()) {
    copy(spec_.path, name_with_preset(spec_.preset));
    return name_with_preset(spec_.preset);
  }
  if (spec_.format == "tekken") {
    copy(spec_.path, "tekken.json");
    return "tekken.json";
  }
  copy(spec_.path, "tokenizer.json");
  for (const std::string& file : spec_.files) copy(parent_directory(spec_.path) + "/" + file, file);
  constexpr const char* kMap = "special_tokens_map.json";
  const bool has_map = std::find(spec_.files.begin(), spec_.files.end(), kMap) != spec_.files.end();
  if (eos_id() >= 0 && spec_.eos_id < 0 && !has_map) write(kMap, special_tokens_map("eos_token", piece(eos_id())));
  return "tokenizer.json";
}

std::vector<std::pair<std::string, std::string>> HfTokenizer::settings() const {
  const auto patterns = [&] {
    std::vector<std::string> found;
    for (const PreTokenizerStep& step : spec_.pre_tokenizer) {
      if (step.kind == PreTokenizerStep::Kind::kSplit) found.push_back(printable(step.pattern.text, 400));
      if (step.kind == PreTokenizerStep::Kind::kByteLevel && step.use_regex) found.push_back("gpt2");
    }
    return join(found, "  then  ");
  };
  std::vector<std::pair<std::string, std::string>> out = {
      {"type", str(spec_.format, spec_.preset.empty() ? "" : "#", spec_.preset,
                   pre_tokenizer_.is_byte_level() ? ", byte-level BPE" : ", BPE")},
      {"pad_id", str(spec_.pad_id)},
      {"pieces", str(spec_.model.pieces.count())},
      {"merges", str(spec_.model.merges.size())},
      {"added_tokens", str(spec_.added.size())},
      {"normalizer", str(spec_.normalizer.size(), " step(s)")},
      {"pattern", patterns()},
      {"ignore_merges", yes_or_no(spec_.model.whole_pieces)},
      {"byte_fallback", yes_or_no(spec_.model.byte_fallback)},
      {"specials", specials_ == SpecialsPolicy::kText ? "text" : "ids"},
      {"chat_template", yes_or_no(!spec_.chat_template.empty())}};
  for (const std::string& remark : spec_.remarks) out.push_back({"remark", remark});
  return out;
}

}  // namespace tokamak
