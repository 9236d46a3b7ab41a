#include "data/web/http.h"

#include <algorithm>
#include <charconv>

#include "data/web/headers.h"
#include "formats/inflate.h"

namespace tokamak {

namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), ascii_lower);
  return out;
}

// The next line of `bytes`, which it leaves; without its line end.
std::string_view take_line(std::string_view& bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// text/html; charset="utf-8"
void read_content_type(std::string_view value, HttpResponse& response) {
  const size_t end = std::min(value.find(';'), value.size());
  response.content_type = lower_case(trim(value.substr(0, end)));
  const std::string parameters = lower_case(value.substr(end));
  const size_t at = parameters.find("charset=");
  if (at == std::string::npos) return;
  std::string_view charset = trim(std::string_view(parameters).substr(at + 8));
  charset = trim(charset.substr(0, std::min(charset.find(';'), charset.size())));
  if (charset.size() > 1 && (charset.front() == '"' || charset.front() == '\'')) {
    charset.remove_prefix(1);
    charset = charset.substr(0, std::min(charset.find_first_of("\"'"), charset.size()));
  }
  response.charset = charset;
}

// The chunks of RFC 9112, section 7.1; nothing if the first has no length. A body that ends early is cut there.
std::optional<std::string> without_chunks(std::string_view body) {
  std::string out;
  for (bool first = true;; first = false) {
    const std::string_view line = take_line(body);
    uint64_t length = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length, 16);
    if (error != std::errc() || end == line.data()) return first ? std::nullopt : std::optional(std::move(out));
    if (length == 0) return out;
    out += body.substr(0, length);
    body.remove_prefix(static_cast<size_t>(std::min<uint64_t>(length, body.size())));
    take_line(body);
  }
}

}  // namespace

std::optional<HttpResponse> parse_http(std::string_view bytes) {
  if (!bytes.starts_with("HTTP/")) return std::nullopt;
  const std::string_view first = take_line(bytes);
  HttpResponse response;
  const size_t space = first.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view code = first.substr(space + 1, 3);
  if (std::from_chars(code.data(), code.data() + code.size(), response.status).ec != std::errc()) return std::nullopt;
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    if (line.empty()) break;
    const Header header = header_of(line);
    if (header.is("Content-Type"))
      read_content_type(header.value, response);
    else if (header.is("Content-Encoding"))
      response.encoding = lower_case(header.value);
    else if (header.is("Transfer-Encoding"))
      response.is_chunked = lower_case(header.value).find("chunked") != std::string::npos;
  }
  response.body = bytes;
  return response;
}

std::optional<std::string> decoded_body(const HttpResponse& response, int64_t most) {
  std::string body(response.body);
  if (response.is_chunked) {
    // A body without a length at its front has been stored without chunks.
    if (std::optional<std::string> whole = without_chunks(body)) body = std::move(*whole);
  }
  if (response.encoding == "gzip" || response.encoding == "x-gzip" || response.encoding == "deflate") {
    if (!is_compressed(body)) return body.substr(0, static_cast<size_t>(most));
    return inflated(body, most);
  }
  if (!response.encoding.empty() && response.encoding != "identity") {
    if (response.encoding == "br" || response.encoding == "zstd" || response.encoding == "compress") {
      // Stored decoded, if it is text of HTML.
      const std::string_view front = trim(std::string_view(body).substr(0, 1024));
      if (!front.starts_with('<')) return std::nullopt;
    }
  }
  body.resize(std::min(body.size(), static_cast<size_t>(most)));
  return body;
}

}  // namespace tokamak
