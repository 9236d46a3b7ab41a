#include "data/pipeline/document_line.h"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/strings.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

namespace ondemand = simdjson::ondemand;

// The shortest digits that are read as the same value.
void append_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";  // read as no value
    return;
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

bool is_white(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

void append_json_text(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  size_t plain = 0;  // what is before needs no escape
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out += text.substr(plain, at - plain);
    plain = at + 1;
    out += '\\';
    switch (byte) {
      case '"':
      case '\\':
        out += static_cast<char>(byte);
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      default:
        out += "u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
    }
  }
  out += text.substr(plain);
  out += '"';
}

struct DocumentLineReader::Parser {
  ondemand::parser parser, of_attributes;
  std::string padded;  // simdjson reads up to 32 bytes beyond the line

  // Reads `attributes`, a part of `padded`. False if it is no object, or a member is no number.
  bool read_values(std::string_view raw, std::vector<DocumentValue>& values) {
    const auto room = static_cast<size_t>(padded.data() + padded.capacity() - raw.data());
    ondemand::document json;
    ondemand::object object;
    if (of_attributes.iterate(raw.data(), raw.size(), room).get(json) != simdjson::SUCCESS ||
        json.get_object().get(object) != simdjson::SUCCESS)
      return false;
    for (auto member : object) {
      std::string_view name;
      if (member.unescaped_key().get(name) != simdjson::SUCCESS) return false;
      const std::string kept(name);
      ondemand::value number;
      bool is_null = false;
      if (member.value().get(number) != simdjson::SUCCESS || number.is_null().get(is_null) != simdjson::SUCCESS)
        return false;
      if (is_null) continue;
      double value = 0;
      if (number.get(value) != simdjson::SUCCESS) return false;
      values.push_back({kept, value});
    }
    return true;
  }
};

DocumentLineReader::DocumentLineReader(std::string text_key)
    : text_key_(std::move(text_key)), parser_(std::make_unique<Parser>()) {}

DocumentLineReader::~DocumentLineReader() = default;

bool DocumentLineReader::read(std::string_view line, Document& document, LineProblem& problem) {
  std::string& padded = parser_->padded;
  padded.reserve(line.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(line);
  document.text.clear(), document.id.clear(), document.url.clear(), document.language.clear(),
      document.metadata.clear();
  document.values.clear(), document.reason.clear();
  bool has_text = false;
  std::string metadata;
  int others = 0;
  int64_t deepest = 0;            // of their values
  std::string_view own_metadata;  // the member of that name, if it is the only other one

  using enum LineProblem::Kind;
  const auto refuse = [&](LineProblem::Kind kind, std::string what) {
    problem = {kind, std::move(what)};
    return false;
  };
  ondemand::document json;
  ondemand::object object;
  if (parser_->parser.iterate(padded.data(), padded.size(), padded.capacity()).get(json) != simdjson::SUCCESS ||
      json.get_object().get(object) != simdjson::SUCCESS)
    return refuse(kNoJson, "it is no JSON object");
  for (auto member : object) {
    std::string_view key;
    if (member.unescaped_key().get(key) != simdjson::SUCCESS) return refuse(kNoJson, "it is damaged JSON");
    std::string* text = nullptr;
    if (key == text_key_)
      text = &document.text, has_text = true;
    else if (key == "id")
      text = &document.id;
    else if (key == "url")
      text = &document.url;
    else if (key == "language")
      text = &document.language;
    else if (key == "reason")
      text = &document.reason;
    const std::string name(key);
    ondemand::value value;
    if (member.value().get(value) != simdjson::SUCCESS) return refuse(kNoJson, "it is damaged JSON");
    std::string_view raw;
    if (text != nullptr) {
      ondemand::json_type type{};
      if (value.type().get(type) != simdjson::SUCCESS) return refuse(kNoJson, "it is damaged JSON");
      if (type == ondemand::json_type::string) {
        std::string_view content;
        if (value.get_string().get(content) != simdjson::SUCCESS)
          return refuse(kNoJson, str("its '", name, "' is damaged"));
        *text = content;
        continue;
      }
      if (text == &document.text) return refuse(kNoText, str("its '", name, "' is no text"));
      if (type == ondemand::json_type::null) continue;
      if (name == "id" && type == ondemand::json_type::number) {
        document.id = trim(value.raw_json_token());
        continue;
      }
    }
    if (simdjson::to_json_string(value).get(raw) != simdjson::SUCCESS)
      return refuse(kNoJson, str("its '", name, "' is damaged"));
    if (name == "attributes") {
      const size_t before = document.values.size();
      if (parser_->read_values(raw, document.values)) continue;
      document.values.resize(before);
    }
    if (!nlohmann::json::accept(raw))
      return refuse(kNoJson, str("its '", name, "' is damaged"));  // simdjson only skips it
    deepest = std::max<int64_t>(deepest, extent_of_json(raw).depth);
    while (!raw.empty() && is_white(raw.back())) raw.remove_suffix(1);
    own_metadata = others == 0 && name == "metadata" && raw.starts_with('{') ? raw : std::string_view();
    metadata += others++ > 0 ? ", " : "{";
    append_json_text(name, metadata);
    metadata += ": ";
    metadata += raw;
  }
  if (const char* rest = nullptr; json.current_location().get(rest) == simdjson::SUCCESS)
    return refuse(kNoJson, "more follows its object");
  if (!has_text) return refuse(kNoText, str("it has no '", text_key_, "'"));
  // Others' members become members of metadata, so that they are one deeper in the line that is written.
  const bool is_own = others == 1 && !own_metadata.empty();
  if (deepest + (is_own ? 0 : 1) > kDeepestJson) return refuse(kTooDeep, "its members are nested too deep");
  if (is_own)
    document.metadata = own_metadata;
  else if (others > 0)
    document.metadata = metadata + "}";
  return true;
}

void append_document_line(const Document& document, std::string& out) {
  const auto member = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += ", ";
    append_json_text(name, out);
    out += ": ";
    append_json_text(value, out);
  };
  out += "{\"text\": ";
  append_json_text(document.text, out);
  member("id", document.id);
  member("url", document.url);
  member("language", document.language);
  if (!document.values.empty()) {
    out += ", \"attributes\": ";
    for (size_t i = 0; i < document.values.size(); ++i) {
      out += i > 0 ? ", " : "{";
      append_json_text(document.values[i].name, out);
      out += ": ";
      append_number(document.values[i].value, out);
    }
    out += '}';
  }
  member("reason", document.reason);
  if (!document.metadata.empty()) {
    out += ", \"metadata\": ";
    out += document.metadata;
  }
  out += '}';
}

}  // namespace tokamak
