#include "tokenizer/hf/tekken_file.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "tokenizer/hf/json_cursor.h"
#include "tokenizer/hf/steps_json.h"
#include "tokenizer/hf/tiktoken_file.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestTekkenVocab = int64_t{1} << 24;
constexpr int64_t kMostControlTokens = 1 << 16;  // they need no place in the file, but memory

// The control tokens of files up to version 7, which do not list them (mistral_common, Tekkenizer).
constexpr std::array<const char*, 20> kTekkenTokens = {"<unk>",
                                                       "<s>",
                                                       "</s>",
                                                       "[INST]",
                                                       "[/INST]",
                                                       "[AVAILABLE_TOOLS]",
                                                       "[/AVAILABLE_TOOLS]",
                                                       "[TOOL_RESULTS]",
                                                       "[/TOOL_RESULTS]",
                                                       "[TOOL_CALLS]",
                                                       "[IMG]",
                                                       "<pad>",
                                                       "[IMG_BREAK]",
                                                       "[IMG_END]",
                                                       "[PREFIX]",
                                                       "[MIDDLE]",
                                                       "[SUFFIX]",
                                                       "[SYSTEM_PROMPT]",
                                                       "[/SYSTEM_PROMPT]",
                                                       "[TOOL_CONTENT]"};

// `vocab`: pieces by rank, in the order of the list.
std::vector<std::string> read_tekken_vocab(JsonCursor& json, const std::string& path) {
  std::vector<std::string> pieces;
  std::string key_buffer, buffer;
  json.expect('[');
  for (bool first = true; json.next_item(first, ']');) {
    int64_t rank = -1;
    std::string bytes;
    json.expect('{');
    for (bool first_member = true; json.next_item(first_member, '}');) {
      const std::string_view key = json.string(key_buffer);
      json.expect(':');
      if (key == "rank") {
        rank = json.whole(kLargestTekkenVocab);
      } else if (key == "token_bytes") {
        bytes = base64_bytes(json.string(buffer), str(path, ": vocab[", pieces.size(), "].token_bytes"));
      } else if (key == "token_str") {
        json.raw_value();  // for people
      } else {
        json.refuse(str("vocab: the field '", printable(key), "' is not known"));
      }
    }
    if (rank != std::ssize(pieces)) json.refuse(str("vocab[", pieces.size(), "] has the rank ", rank));
    if (bytes.empty()) json.refuse(str("vocab[", pieces.size(), "] has no token_bytes"));
    pieces.push_back(std::move(bytes));
  }
  return pieces;
}

AddedToken control_token(std::string content, int64_t id) {
  AddedToken token;
  token.content = std::move(content);
  token.id = static_cast<int32_t>(id);
  token.special = true;
  token.in_text = false;
  return token;
}

void read_control_tokens(const JsonValue& root, int64_t count, TokenizerSpec& spec) {
  if (root["special_tokens"].present()) {
    for (const JsonValue& item : root["special_tokens"].items()) {
      expect_only(item, {"rank", "token_str", "is_control"});
      if (item["rank"].whole() != std::ssize(spec.added)) item["rank"].refuse("expected the position in the list");
      spec.added.push_back(control_token(item["token_str"].text(), std::ssize(spec.added)));
    }
  } else {
    const std::string version = root["config"]["version"].text_or("v3");
    if (version != "v1" && version != "v2" && version != "v3" && version != "v7") {
      root["config"]["version"].refuse("files of this version list their special_tokens");
    }
    for (const char* content : kTekkenTokens) spec.added.push_back(control_token(content, std::ssize(spec.added)));
  }
  if (std::ssize(spec.added) > count) root["special_tokens"].refuse(str("there are more than ", count));
  while (std::ssize(spec.added) < count) {
    spec.added.push_back(control_token(str("<SPECIAL_", spec.added.size(), ">"), std::ssize(spec.added)));
  }
  VocabTable contents;
  for (const AddedToken& token : spec.added) {
    if (!contents.add(token.content, token.id)) {
      root["special_tokens"].refuse(str("'", printable(token.content), "' is there twice"));
    }
    if (token.content == "<unk>") spec.unk_id = token.id;
    if (token.content == "<s>") spec.bos_id = token.id;
    if (token.content == "</s>") spec.eos_id = token.id;
    if (token.content == "<pad>") spec.pad_id = token.id;
  }
}

}  // namespace

bool is_tekken_key(std::string_view key) {
  for (const std::string_view known : {"config", "vocab", "special_tokens", "image", "audio", "multimodal", "type"}) {
    if (key == known) return true;
  }
  return false;
}

TokenizerSpec parse_tekken(std::string_view text, const std::string& path) {
  if (!is_valid_utf8(text)) fail(Kind::kData, str(path, " is not UTF-8"));
  std::string rest = "{";
  std::vector<std::string> pieces;
  JsonCursor json(text, path);
  json.members([&](std::string_view key, std::string_view written) {
    if (rest.size() > 1) rest += ',';
    rest += written;
    if (key == "vocab") {
      if (!pieces.empty()) json.refuse("'vocab' is there twice");
      pieces = read_tekken_vocab(json, path);
      rest += "null";
    } else {
      rest += json.raw_value();
    }
  });
  if (json.peek() != '\0' || json.offset() != text.size()) json.refuse("text behind the end of the object");
  const JsonDocument document(rest + "}", {path});
  const JsonValue root = document.root(), config = document["config"];
  expect_only(root, {"config", "vocab", "special_tokens", "image", "audio", "multimodal"});
  expect_only(config, {"pattern", "num_vocab_tokens", "default_vocab_size", "default_num_special_tokens", "version"});

  TokenizerSpec spec;
  spec.path = path;
  spec.format = "tekken";
  const int64_t specials = config["default_num_special_tokens"].whole(0, kMostControlTokens);
  const int64_t size = config["default_vocab_size"].whole(specials + 1, kLargestTekkenVocab);
  if (size - specials > std::ssize(pieces)) {
    config["default_vocab_size"].refuse(
        str("the file has ", pieces.size(), " pieces and ", specials, " special tokens"));
  }
  read_control_tokens(root, specials, spec);
  pieces.resize(static_cast<size_t>(size - specials));
  pieces.insert(pieces.begin(), static_cast<size_t>(specials), "");
  spec.model = byte_level_model(pieces, path);
  set_byte_level_steps(config["pattern"].text(), spec);
  return spec;
}

TokenizerSpec read_tekken_file(const std::string& path) {
  const std::string text = read_text(path, Kind::kData);
  TokenizerSpec spec = parse_tekken(text, path);
  spec.hash = xxh3_128_hex(std::as_bytes(std::span(text)));
  return spec;
}

}  // namespace tokamak
