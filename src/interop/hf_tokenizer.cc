#include "interop/hf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/normalize.h"

namespace tokamak {

namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<size_t> character_ends(std::string_view text) {
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) {
    at += static_cast<size_t>(decode_valid_utf8(text.data() + at).length);
    ends.push_back(at);
  }
  return ends;
}

// Merges start from characters that are pieces; SentencePiece's trainer makes no others.
void check_characters(const ModelProto& model, const std::string& source) {
  std::unordered_map<std::string_view, bool> normal;
  for (const Piece& piece : model.pieces) {
    if (piece.type == PieceType::kNormal) normal.emplace(piece.text, true);
  }
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    size_t begin = 0;
    for (const size_t end : character_ends(piece.text)) {
      const std::string_view character = std::string_view(piece.text).substr(begin, end - begin);
      if (normal.count(character) == 0 || character == " ") {
        fail(Kind::kData,
             str("tokenizer model ", source, ": the piece '", piece.text, "' has the character '", character,
                 "', which is not a piece: tokenizer.json cannot express that"),
             "export with --tokenizer DIR (files to copy) or --tokenizer none");
      }
      begin = end;
    }
  }
}

bool is_added(const Piece& piece) {
  return piece.type == PieceType::kControl || piece.type == PieceType::kUnknown ||
         piece.type == PieceType::kUserDefined;
}

// User-defined symbols are matched in the normalised text, where a space is U+2581.
OrderedJson added_token(const Piece& piece) {
  const bool symbol = piece.type == PieceType::kUserDefined;
  return {{"content", piece.text}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},       {"normalized", symbol}, {"special", !symbol}};
}

std::string escaped_for_regex(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!plain) out += '\\';
    out += c;
  }
  return out;
}

OrderedJson replace(const OrderedJson& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

// Replaces spaces by U+2581 and prepends one. The library also normalises user-defined symbols, so the last steps
// remove the U+2581 before them.
OrderedJson normalizer_of(const ModelProto& model) {
  OrderedJson steps = OrderedJson::array();
  const bool prefix = model.normalizer.add_dummy_prefix;
  if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceSymbol}});
  steps.push_back(replace({{"String", " "}}, std::string(kSpaceSymbol)));
  for (const Piece& piece : model.pieces) {
    if (!prefix || piece.type != PieceType::kUserDefined) continue;
    steps.push_back(replace({{"Regex", str("\\A", kSpaceSymbol, escaped_for_regex(piece.text), "\\z")}}, piece.text));
  }
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

OrderedJson decoder_of(const ModelProto& model) {
  OrderedJson steps = {replace({{"String", kSpaceSymbol}}, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (model.normalizer.add_dummy_prefix) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", steps}};
}

OrderedJson post_processor_of(const ModelProto& model, const HfTokenizerOptions& options) {
  if (!options.add_bos || model.bos_id < 0) return nullptr;
  const std::string& bos = model.pieces[model.bos_id].text;
  const auto token = [&](int type) { return OrderedJson{{"SpecialToken", {{"id", bos}, {"type_id", type}}}}; };
  const auto text = [](const char* name, int type) {
    return OrderedJson{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", OrderedJson::array({token(0), text("A", 0)})},
          {"pair", OrderedJson::array({token(0), text("A", 0), token(1), text("B", 1)})},
          {"special_tokens",
           {{bos, {{"id", bos}, {"ids", OrderedJson::array({model.bos_id})}, {"tokens", OrderedJson::array({bos})}}}}}};
}

OrderedJson model_of(const ModelProto& model) {
  // Appended, not assigned: assignment to an ordered object scans all its keys.
  OrderedJson::object_t vocab;
  auto& entries = static_cast<OrderedJson::object_t::Container&>(vocab);
  entries.reserve(model.pieces.size());
  for (size_t id = 0; id < model.pieces.size(); ++id) entries.emplace_back(model.pieces[id].text, id);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", model.pieces[model.unk_id].text},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.trainer.byte_fallback},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", bpe_merges(model)}};
}

OrderedJson text_or_null(const ModelProto& model, int32_t id) {
  return id < 0 ? OrderedJson(nullptr) : OrderedJson(model.pieces[id].text);
}

// tokenizer_class is not LlamaTokenizer: in transformers 5 that class builds its own pipeline instead of reading
// tokenizer.json, and loses a space at the start of a text.
OrderedJson config_of(const ModelProto& model, const HfTokenizerOptions& options) {
  OrderedJson added = OrderedJson::object();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (is_added(model.pieces[id])) added[std::to_string(id)] = added_token(model.pieces[id]);
  }
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"model_max_length", options.max_length},
          {"add_bos_token", options.add_bos},
          {"add_eos_token", false},
          {"split_special_tokens", true},
          {"clean_up_tokenization_spaces", false},
          {"bos_token", text_or_null(model, model.bos_id)},
          {"eos_token", text_or_null(model, model.eos_id)},
          {"unk_token", text_or_null(model, model.unk_id)},
          {"pad_token", nullptr},
          {"added_tokens_decoder", added}};
}

}  // namespace

std::vector<std::string> bpe_merges(const ModelProto& model) {
  struct Merge {
    std::string_view left, right;
    float score;
    size_t left_id, right_id;
    size_t left_length, right_length;  // characters
  };
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == PieceType::kNormal) ids.emplace(model.pieces[id].text, id);
  }
  std::vector<Merge> merges;
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    const std::vector<size_t> ends = character_ends(piece.text);
    for (size_t cut = 0; cut + 1 < ends.size(); ++cut) {
      const std::string_view text = piece.text;
      const auto left = ids.find(text.substr(0, ends[cut]));
      const auto right = ids.find(text.substr(ends[cut]));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back(
          {left->first, right->first, piece.score, left->second, right->second, cut + 1, ends.size() - cut - 1});
    }
  }
  // The order of transformers' converter: by score, then the longer left half, then ids.
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.left_length != b.left_length) return a.left_length > b.left_length;
    if (a.right_length != b.right_length) return a.right_length > b.right_length;
    return std::tie(a.left_id, a.right_id) < std::tie(b.left_id, b.right_id);
  });
  std::vector<std::string> lines;
  lines.reserve(merges.size());
  for (const Merge& merge : merges) lines.push_back(str(merge.left, " ", merge.right));
  return lines;
}

std::vector<TokenizerFile> render_hf_tokenizer(const ModelProto& model, const std::string& source,
                                               const HfTokenizerOptions& options) {
  check_characters(model, source);
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (!is_added(model.pieces[id])) continue;
    OrderedJson token = {{"id", id}};
    token.update(added_token(model.pieces[id]));
    added.push_back(token);
  }
  const OrderedJson tokenizer = {{"version", "1.0"},
                                 {"truncation", nullptr},
                                 {"padding", nullptr},
                                 {"added_tokens", added},
                                 {"normalizer", normalizer_of(model)},
                                 {"pre_tokenizer", nullptr},
                                 {"post_processor", post_processor_of(model, options)},
                                 {"decoder", decoder_of(model)},
                                 {"model", model_of(model)}};
  OrderedJson map = OrderedJson::object();
  if (model.bos_id >= 0) map["bos_token"] = model.pieces[model.bos_id].text;
  if (model.eos_id >= 0) map["eos_token"] = model.pieces[model.eos_id].text;
  map["unk_token"] = model.pieces[model.unk_id].text;
  return {{"tokenizer.json", tokenizer.dump(1) + "\n"},
          {"tokenizer_config.json", config_of(model, options).dump(2) + "\n"},
          {"special_tokens_map.json", map.dump(2) + "\n"}};
}

}  // namespace tokamak
