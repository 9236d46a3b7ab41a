#include "tokenizer/hf/json_cursor.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr int kDeepestRawJson = 16;

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

void JsonCursor::refuse(const std::string& what) const {
  fail(Kind::kData, str(source_, ": offset ", at_, ": ", what, ", at '", printable(text_.substr(at_, 20)), "'"));
}

char JsonCursor::peek() {
  while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::take(char c) {
  if (peek() != c || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c) {
  if (!take(c)) refuse(str("expected '", c, "'"));
}

bool JsonCursor::next_item(bool& first, char end) {
  if (take(end)) {
    return false;
  }
  if (!first) {
    expect(',');
    if (peek() == end) refuse("a comma without a value behind it");
  }
  first = false;
  return true;
}

std::string_view JsonCursor::string(std::string& buffer) {
  expect('"');
  const size_t begin = at_;
  const auto plain = [&] {
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20)
      ++at_;
  };
  plain();
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  buffer.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') refuse("a control character in a string");
    append_escape(buffer);
    const size_t from = at_;
    plain();
    buffer += text_.substr(from, at_ - from);
  }
  expect('"');
  return buffer;
}

char32_t JsonCursor::hex4() {
  char32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) refuse("expected four hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(digit);
  }
  return value;
}

void JsonCursor::append_escape(std::string& buffer) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;  // the backslash
  const char name = at_ < text_.size() ? text_[at_] : '\0';
  ++at_;
  if (name == 'u') {
    char32_t c = hex4();
    if (c >= 0xD800 && c < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const char32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) refuse("half of a surrogate pair");
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    if (c >= 0xD800 && c < 0xE000) refuse("half of a surrogate pair");
    append_utf8(c, buffer);
    return;
  }
  const size_t found = kNames.find(name);
  if (name == '\0' || found == std::string_view::npos) refuse("an unknown escape in a string");
  buffer += kMeanings[found];
}

int64_t JsonCursor::whole(int64_t most) {
  peek();
  const size_t begin = at_;
  int64_t value = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    value = value * 10 + (text_[at_] - '0');
    if (value > most) refuse(str("expected a whole number of at most ", most));
    ++at_;
  }
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  if (at_ == begin || (text_[begin] == '0' && at_ > begin + 1) || next == '.' || next == 'e' || next == 'E') {
    refuse("expected a whole number");
  }
  return value;
}

void JsonCursor::skip_string() {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) {
    at_ = text_.size();
    refuse("a string without an end");
  }
  ++at_;
}

std::string_view JsonCursor::raw_value() {
  peek();
  const size_t begin = at_;
  int depth = 0;
  do {
    const char c = peek();
    if (at_ == text_.size()) refuse("the text ends within a value");
    if (c == '"') {
      skip_string();
      continue;
    }
    if (c == '[' || c == '{') {
      if (++depth > kDeepestRawJson) refuse(str("nested more than ", kDeepestRawJson, " deep"));
    }
    if (c == ']' || c == '}') {
      if (--depth < 0) refuse("expected a value");
    }
    if (depth == 0 && (c == ',' || c == ':')) refuse("expected a value");
    ++at_;
    if (depth == 0 && c != ']' && c != '}') {  // a number or a word
      while (at_ < text_.size() && !is_json_space(text_[at_]) &&
             std::string_view(",]}").find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
  } while (depth > 0);
  return text_.substr(begin, at_ - begin);
}

}  // namespace tokamak
