#include "tokenizer/hf/tokenizer_json.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "tokenizer/hf/bpe_section.h"
#include "tokenizer/hf/json_cursor.h"
#include "tokenizer/hf/special_ids.h"
#include "tokenizer/hf/steps_json.h"

namespace tokamak {

namespace {

// The file without its two large members, which are read on the way.
struct SplitFile {
  std::string rest = "{";  // a JSON object
  std::optional<VocabTable> vocab;
  std::optional<std::string_view> merges;  // as it is written
  size_t merges_at = 0;
};

void append_member(std::string_view key_and_colon, std::string_view value, std::string& object) {
  if (object.back() != '{') object += ',';
  object.append(key_and_colon).append(value);
}

void split_model(JsonCursor& json, SplitFile& file) {
  json.members([&](std::string_view key, std::string_view written) {
    if (key == "vocab" && json.peek() == '{') {
      if (file.vocab) json.refuse("'model.vocab' is there twice");
      file.vocab = read_vocab(json);
      return;
    }
    if (key == "merges") {
      if (file.merges) json.refuse("'model.merges' is there twice");
      json.peek();
      file.merges_at = json.offset();
      file.merges = json.raw_value();
      return;
    }
    append_member(written, json.raw_value(), file.rest);
  });
}

SplitFile split_file(std::string_view text, const std::string& path) {
  SplitFile file;
  JsonCursor json(text, path);
  json.members([&](std::string_view key, std::string_view written) {
    if (key == "model" && json.peek() == '{') {
      append_member(written, "{", file.rest);
      split_model(json, file);
      file.rest += '}';
      return;
    }
    append_member(written, json.raw_value(), file.rest);
  });
  if (json.peek() != '\0' || json.offset() != text.size()) json.refuse("text behind the end of the object");
  file.rest += '}';
  return file;
}

void read_model(const JsonValue& json, std::string_view text, const std::string& path, SplitFile& file,
                BpeSpec& model) {
  json.keys();  // an object
  const std::string type = json["type"].text_or(file.merges && file.vocab ? "BPE" : "");
  if (type != "BPE") json["type"].refuse("only BPE models are supported");
  expect_only(json, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                     "byte_fallback", "ignore_merges"});
  if (json["dropout"].number_or(0) != 0) json["dropout"].refuse("BPE dropout is not supported");
  if (!file.vocab) fail(Kind::kData, str(path, ": 'model.vocab' is missing, or no object"));
  if (!file.merges) fail(Kind::kData, str(path, ": 'model.merges' is missing"));
  model.pieces = std::move(*file.vocab);
  model.whole_pieces = json["ignore_merges"].truth_or(false);
  model.fuse_unk = json["fuse_unk"].truth_or(false);
  model.byte_fallback = json["byte_fallback"].truth_or(false);
  model.continuing_subword_prefix = json["continuing_subword_prefix"].text_or("");
  model.end_of_word_suffix = json["end_of_word_suffix"].text_or("");
  model.unk_token = json["unk_token"].text_or("");
  if (!model.unk_token.empty()) model.unk_id = model.pieces.find(model.unk_token);
  JsonCursor merges(text, path);
  merges.skip_to(file.merges_at);
  model.merges = read_merges(merges, model.pieces, model.continuing_subword_prefix.size());
}

// The ids are those that Hugging Face's loader assigns: of a vocabulary's piece its id, of any other content the next.
void read_added_tokens(const JsonValue& json, TokenizerSpec& spec) {
  if (!json.present()) return;
  VocabTable contents;
  int64_t next = spec.model.pieces.count();
  for (const JsonValue& item : json.items()) {
    expect_only(item, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.content = item["content"].text();
    token.single_word = item["single_word"].truth();
    token.lstrip = item["lstrip"].truth();
    token.rstrip = item["rstrip"].truth();
    token.normalized = item["normalized"].truth();
    token.special = item["special"].truth();
    if (token.content.empty()) item["content"].refuse("an empty token matches nothing");
    const int64_t written = item["id"].whole(0, INT32_MAX - 1);
    const int32_t known = spec.model.pieces.find(token.content);
    const int64_t id = known >= 0 ? known : next;
    if (written != id) {
      item["id"].refuse(str("Hugging Face's loader gives '", printable(token.content), "' the id ", id));
    }
    token.id = static_cast<int32_t>(id);
    if (known < 0 && spec.model.pieces.has(token.id)) item["id"].refuse("a piece of model.vocab has this id");
    if (!contents.add(token.content, token.id)) item.refuse("its content or its id is there twice");
    next = std::max(next, id + 1);
    spec.added.push_back(std::move(token));
  }
}

void note_ignored(const JsonValue& json, const char* name, TokenizerSpec& spec) {
  if (json.present()) spec.remarks.push_back(str("'", name, "' is not applied: documents are cut into windows later"));
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& path) {
  if (!is_valid_utf8(text)) fail(Kind::kData, str(path, " is not UTF-8"));
  SplitFile file = split_file(text, path);
  const JsonDocument document(file.rest, {path});
  const JsonValue root = document.root();
  expect_only(root, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  if (root["version"].text_or("1.0") != "1.0") root["version"].refuse("only version 1.0 is known");
  TokenizerSpec spec;
  spec.path = path;
  spec.format = "tokenizer.json";
  read_model(root["model"], text, path, file, spec.model);
  read_added_tokens(root["added_tokens"], spec);
  spec.normalizer = read_normalizer(root["normalizer"]);
  spec.pre_tokenizer = read_pre_tokenizer(root["pre_tokenizer"]);
  if (root["decoder"].present()) spec.decoder = read_decoder(root["decoder"]);
  read_post_processor(root["post_processor"], spec.prefix_ids, spec.suffix_ids);
  for (const std::vector<int32_t>* ids : {&spec.prefix_ids, &spec.suffix_ids}) {
    for (const int32_t id : *ids) {
      if (id >= spec.vocab_size()) root["post_processor"].refuse(str("id ", id, " is not in the vocabulary"));
    }
  }
  note_ignored(root["truncation"], "truncation", spec);
  note_ignored(root["padding"], "padding", spec);
  spec.unk_id = spec.model.unk_id;
  return spec;
}

TokenizerSpec read_tokenizer_json(const std::string& path) {
  const std::string text = read_text(path, Kind::kData);
  TokenizerSpec spec = parse_tokenizer_json(text, path);
  spec.hash = xxh3_128_hex(std::as_bytes(std::span(text)));
  read_special_ids(parent_directory(path), spec);
  return spec;
}

}  // namespace tokamak
