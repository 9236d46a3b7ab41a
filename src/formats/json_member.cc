// A scanner of the grammar of RFC 8259. It checks the whole line, because a malformed line is an error even where the
// member is intact.
#include "formats/json_member.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

constexpr ptrdiff_t kLongestNumber = 64;  // a longer one may be beyond a double, which the reference refuses

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool ends_run(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }

// The value of 4 hexadecimal digits, or -1.
int hex4(const char* p) {
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

char* put_utf8(int code, char* out) {
  const auto put = [&](int byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return out;
}

// The strings that the scanner passes: left out, or decoded.
struct Skip {
  void byte(char) {}
  void code(int) {}
#if defined(__AVX2__)
  void block(__m256i) {}
#endif
  void advance(ptrdiff_t) {}
};

// Writes the text to memory of at least the string's size and a block.
struct Decode {
  char* out;
  void byte(char c) { *out++ = c; }
  void code(int code) { out = put_utf8(code, out); }
#if defined(__AVX2__)
  void block(__m256i bytes) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes); }
#endif
  void advance(ptrdiff_t count) { out += count; }
};

class JsonLine {
 public:
  static constexpr size_t kBlock = 32;

  explicit JsonLine(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool read(std::string_view key, std::string& text);

 private:
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  template <class Sink>
  bool string(Sink& sink);
  template <class Sink>
  bool escape(Sink& sink);
  bool skip_string() {
    Skip nothing;
    return string(nothing);
  }
  bool skip_key() {
    if (!skip_string()) return false;
    skip_space();
    return take(':');
  }
  bool number();
  bool word(std::string_view literal);
  bool scalar();
  bool value();

  const char* at_;
  const char* end_;
};

// Passes a string whose opening quote is at `at_`.
template <class Sink>
bool JsonLine::string(Sink& sink) {
  if (!take('"')) return false;
  for (;;) {
#if defined(__AVX2__)
    while (end_ - at_ >= ptrdiff_t{kBlock}) {
      const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at_));
      const __m256i control = _mm256_cmpeq_epi8(_mm256_max_epu8(block, _mm256_set1_epi8(0x1F)), _mm256_set1_epi8(0x1F));
      const __m256i marks = _mm256_or_si256(_mm256_cmpeq_epi8(block, _mm256_set1_epi8('"')),
                                            _mm256_cmpeq_epi8(block, _mm256_set1_epi8('\\')));
      const auto stops = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(control, marks)));
      const ptrdiff_t run = stops == 0 ? ptrdiff_t{kBlock} : std::countr_zero(stops);
      sink.block(block);
      sink.advance(run);
      at_ += run;
      if (stops != 0) break;
    }
#endif
    while (at_ < end_ && !ends_run(*at_)) sink.byte(*at_++);
    if (at_ == end_) return false;
    const char stop = *at_++;
    if (stop == '"') return true;
    if (stop != '\\' || !escape(sink)) return false;
  }
}

// Decodes an escape behind its backslash.
template <class Sink>
bool JsonLine::escape(Sink& sink) {
  static constexpr std::array<char, 256> kMeaning = [] {
    std::array<char, 256> meaning{};
    for (const char same : {'"', '\\', '/'}) meaning[static_cast<unsigned char>(same)] = same;
    meaning['b'] = '\b', meaning['f'] = '\f', meaning['n'] = '\n', meaning['r'] = '\r', meaning['t'] = '\t';
    return meaning;
  }();
  if (at_ == end_) return false;
  const char c = *at_++;
  if (const char meant = kMeaning[static_cast<unsigned char>(c)]) {
    sink.byte(meant);
    return true;
  }
  if (c != 'u' || end_ - at_ < 4) return false;
  int code = hex4(at_);
  at_ += 4;
  if (code >= 0xDC00 && code < 0xE000) return false;  // the second half of a pair, alone
  if (code >= 0xD800 && code < 0xDC00) {
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return false;
    const int low = hex4(at_ + 2);
    if (low < 0xDC00 || low >= 0xE000) return false;
    at_ += 6;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code < 0) return false;
  sink.code(code);
  return true;
}

bool JsonLine::number() {
  const char* begin = at_;
  const auto digits = [&] {
    const char* first = at_;
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return at_ > first;
  };
  take('-');
  if (!take('0') && !digits()) return false;
  if (take('.') && !digits()) return false;
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    const char* exponent = at_;
    if (!digits() || at_ - exponent > 2) return false;
  }
  return at_ - begin <= kLongestNumber;
}

bool JsonLine::word(std::string_view literal) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

bool JsonLine::scalar() {
  if (at_ == end_) return false;
  switch (*at_) {
    case '"':
      return skip_string();
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return number();
  }
}

// Passes a value of any kind. The objects and lists that are open are remembered by their closing bracket.
bool JsonLine::value() {
  std::array<char, kDeepestJson> open;
  int depth = 0;
  for (;;) {
    skip_space();
    bool whole = true;  // a value ends here
    if (take('{')) {
      open[depth++] = '}';
      skip_space();
      if (!take('}')) {
        if (!skip_key()) return false;
        whole = false;
      } else {
        --depth;
      }
    } else if (take('[')) {
      open[depth++] = ']';
      skip_space();
      if (!take(']')) {
        whole = false;
      } else {
        --depth;
      }
    } else if (!scalar()) {
      return false;
    }
    if (depth == kDeepestJson) return false;  // the object of the line is one more
    if (!whole) continue;
    for (;;) {
      if (depth == 0) return true;
      skip_space();
      if (take(',')) break;
      if (!take(open[depth - 1])) return false;
      --depth;
    }
    if (open[depth - 1] == '}') {
      skip_space();
      if (!skip_key()) return false;
    }
  }
}

bool JsonLine::read(std::string_view key, std::string& text) {
  bool found = false;
  skip_space();
  if (!take('{')) return false;
  skip_space();
  if (take('}')) return false;
  for (;;) {
    skip_space();
    const char* name = at_ + 1;
    if (!skip_string()) return false;
    const std::string_view raw(name, static_cast<size_t>(at_ - 1 - name));
    if (raw.find('\\') != std::string_view::npos) return false;
    skip_space();
    if (!take(':')) return false;
    if (raw == key) {
      if (found) return false;
      found = true;
      skip_space();
      const size_t most = static_cast<size_t>(end_ - at_) + kBlock;
      if (text.size() < most) text.resize(most);
      Decode decode{text.data()};
      if (!string(decode)) return false;
      text.resize(static_cast<size_t>(decode.out - text.data()));
    } else if (!value()) {
      return false;
    }
    skip_space();
    if (take(',')) continue;
    if (!take('}')) return false;
    skip_space();
    return found && at_ == end_;
  }
}

}  // namespace

bool read_json_text(std::string_view line, std::string_view key, std::string& text) {
  return is_valid_utf8(line) && JsonLine(line).read(key, text);
}

}  // namespace tokamak
