#include "tokenizer/hf/special_ids.h"

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "formats/json.h"

namespace tokamak {

namespace {

struct SpecialId {
  const char* token;  // key in tokenizer_config.json and special_tokens_map.json: a text, or an object with `content`
  const char* id;     // key in generation_config.json
  int32_t TokenizerSpec::*value;
};

constexpr SpecialId kSpecialIds[] = {{"bos_token", "bos_token_id", &TokenizerSpec::bos_id},
                                     {"eos_token", "eos_token_id", &TokenizerSpec::eos_id},
                                     {"unk_token", nullptr, &TokenizerSpec::unk_id},
                                     {"pad_token", "pad_token_id", &TokenizerSpec::pad_id}};

void read_named_tokens(const JsonValue& json, TokenizerSpec& spec) {
  for (const SpecialId& special : kSpecialIds) {
    const JsonValue value = json[special.token];
    if (!value.present() || spec.*special.value >= 0) continue;
    const std::string text = value.is_text() ? value.text() : value["content"].text();
    spec.*special.value = find_token(spec, text);
    if (spec.*special.value < 0) {
      spec.remarks.push_back(
          str(json.source().where, ": '", special.token, "' is '", printable(text), "', which is no token here"));
    }
  }
}

// A list of EOS ids says which end an answer; which of them ends a document, it does not say.
void read_numbered_tokens(const JsonValue& json, TokenizerSpec& spec) {
  for (const SpecialId& special : kSpecialIds) {
    if (special.id == nullptr || spec.*special.value >= 0) continue;
    const JsonValue value = json[special.id];
    if (value.present() && !value.is_list()) {
      spec.*special.value = static_cast<int32_t>(value.whole(0, spec.vocab_size() - 1));
    }
  }
}

void read_chat_template(const JsonValue& value, TokenizerSpec& spec) {
  if (!value.present()) return;
  if (!value.is_list()) {
    spec.chat_template = value.text();
    return;
  }
  for (const JsonValue& named : value.items()) {
    if (named["name"].text() == "default") spec.chat_template = named["template"].text();
  }
}

}  // namespace

std::string special_tokens_map(const std::string& name, std::string_view token) {
  std::string quoted;
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr const char* kDigits = "0123456789abcdef";
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20) {
      append(quoted, str("\\u00", kDigits[byte >> 4], kDigits[byte & 15]));
    } else {
      quoted += c;
    }
  }
  return str("{\"", name, "\": \"", quoted, "\"}\n");
}

int32_t find_token(const TokenizerSpec& spec, std::string_view text) {
  for (const AddedToken& token : spec.added) {
    if (token.content == text) return token.id;
  }
  return spec.model.pieces.find(text);
}

void read_special_ids(const std::string& directory, TokenizerSpec& spec) {
  const auto read = [&](const char* name, const auto& take) {
    const std::string path = directory + "/" + name;
    if (!exists(path)) return;
    spec.files.push_back(name);
    take(JsonDocument(read_text(path, Kind::kData), {path}, JsonRules::kLenient));
  };
  read("tokenizer_config.json", [&](const JsonDocument& json) {
    read_named_tokens(json.root(), spec);
    read_chat_template(json["chat_template"], spec);
  });
  read("special_tokens_map.json", [&](const JsonDocument& json) { read_named_tokens(json.root(), spec); });
  read("generation_config.json", [&](const JsonDocument& json) { read_numbered_tokens(json.root(), spec); });
  const std::string jinja = directory + "/chat_template.jinja";
  if (exists(jinja)) {
    spec.chat_template = read_text(jinja, Kind::kData);
    spec.files.push_back("chat_template.jinja");
  }
}

}  // namespace tokamak
