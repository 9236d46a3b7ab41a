#include "data/web/charset.h"

#include <iconv.h>
#include <uchardet/uchardet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/utf8.h"
#include "data/web/headers.h"

namespace tokamak {

namespace {

constexpr size_t kMetaBytes = 1024;
constexpr size_t kDetectBytes = size_t{64} << 10;

struct Alias {
  std::string_view label, name;  // a label of the web, and iconv's name of what browsers take it for
};
constexpr Alias kAliases[] = {
    {"iso-8859-1", "WINDOWS-1252"},
    {"iso8859-1", "WINDOWS-1252"},
    {"latin1", "WINDOWS-1252"},
    {"us-ascii", "WINDOWS-1252"},
    {"ascii", "WINDOWS-1252"},
    {"iso-8859-9", "WINDOWS-1254"},
    {"latin5", "WINDOWS-1254"},
    {"iso-8859-11", "WINDOWS-874"},
    {"tis-620", "WINDOWS-874"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"x-gbk", "GB18030"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"windows-31j", "CP932"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
    {"big5", "BIG5-HKSCS"},
    {"x-x-big5", "BIG5-HKSCS"},
    {"utf8", "UTF-8"},
    {"unicode-1-1-utf-8", "UTF-8"},
    {"utf-16", "UTF-16LE"},
    {"unicode", "UTF-16LE"},
};

class Converter {
 public:
  explicit Converter(const std::string& from) : iconv_(iconv_open("UTF-8", from.c_str())) {}
  ~Converter() {
    if (is_open()) iconv_close(iconv_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  bool is_open() const { return iconv_ != reinterpret_cast<iconv_t>(-1); }

  std::string convert(std::string_view bytes) {
    std::string out;
    std::array<char, 4096> buffer;
    char* in = const_cast<char*>(bytes.data());
    size_t left = bytes.size();
    while (left > 0) {
      char* to = buffer.data();
      size_t room = buffer.size();
      const size_t result = iconv(iconv_, &in, &left, &to, &room);
      out.append(buffer.data(), buffer.size() - room);
      if (result != static_cast<size_t>(-1) || errno == E2BIG) continue;
      out += kReplacementChar;  // an invalid sequence, or one that the end cuts
      if (errno == EINVAL) break;
      ++in, --left;
    }
    return out;
  }

 private:
  iconv_t iconv_;
};

// iconv's name for a label; "" for one that is not there.
std::string name_of(std::string_view label) {
  std::string lower(trim(label));
  std::transform(lower.begin(), lower.end(), lower.begin(), ascii_lower);
  const bool plausible = !lower.empty() && lower.size() < 40 && lower.find_first_of("/,") == std::string::npos;
  if (!plausible) return "";
  for (const Alias& alias : kAliases)
    if (alias.label == lower) return std::string(alias.name);
  return Converter(lower).is_open() ? lower : "";
}

// <meta charset="..."> or <meta http-equiv ... content="text/html; charset=...">
std::string_view declared_in_page(std::string_view bytes) {
  std::string front(bytes.substr(0, kMetaBytes));
  std::transform(front.begin(), front.end(), front.begin(), ascii_lower);
  for (size_t at = front.find("<meta"); at != std::string::npos; at = front.find("<meta", at + 5)) {
    const size_t end = std::min(front.find('>', at), front.size());
    const size_t charset = front.find("charset=", at);
    if (charset == std::string::npos || charset >= end) continue;
    size_t begin = charset + 8;
    while (begin < end && (front[begin] == '"' || front[begin] == '\'' || front[begin] == ' ')) ++begin;
    const size_t stop = std::min(front.find_first_of("\"' ;/>", begin), end);
    return bytes.substr(begin, stop - begin);
  }
  return {};
}

std::string detected(std::string_view bytes) {
  struct Free {
    void operator()(uchardet* detector) const { uchardet_delete(detector); }
  };
  const std::unique_ptr<uchardet, Free> detector(uchardet_new());
  uchardet_handle_data(detector.get(), bytes.data(), std::min(bytes.size(), kDetectBytes));
  uchardet_data_end(detector.get());
  return name_of(uchardet_get_charset(detector.get()));
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return std::string(bytes);
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Char c = decode_utf8(bytes);
    const auto length = static_cast<size_t>(c.length);
    out += c.code == kInvalidUtf8 ? kReplacementChar : bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  return out;
}

std::string page_to_utf8(std::string_view bytes, std::string_view declared) {
  if (bytes.starts_with("\xEF\xBB\xBF")) return valid_utf8(bytes.substr(3));
  std::string name;
  if (bytes.starts_with("\xFF\xFE"))
    name = "UTF-16LE", bytes.remove_prefix(2);
  else if (bytes.starts_with("\xFE\xFF"))
    name = "UTF-16BE", bytes.remove_prefix(2);
  if (name.empty()) name = name_of(declared);
  // A page that we can read as ASCII is not UTF-16, whatever it says.
  if (name.empty()) name = name_of(declared_in_page(bytes));
  if (name.starts_with("UTF-16") && bytes.substr(0, kMetaBytes).find('\0') == std::string_view::npos) name = "UTF-8";
  if (name.empty() && is_valid_utf8(bytes)) return std::string(bytes);
  if (name.empty()) name = detected(bytes);
  if (name.empty() || name == "UTF-8" || name == "utf-8") return valid_utf8(bytes);
  Converter converter(name);
  return converter.is_open() ? converter.convert(bytes) : valid_utf8(bytes);
}

}  // namespace tokamak
