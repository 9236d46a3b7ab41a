// An HTTP response as a crawler stored it (RFC 9112): status line, headers, body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

struct HttpResponse {
  int status = 0;
  std::string content_type;  // in lower case, without parameters: "text/html"; may be empty
  std::string charset;       // its parameter; may be empty
  std::string encoding;      // Content-Encoding in lower case; "" and "identity" are none
  bool is_chunked = false;
  std::string_view body;  // as stored; in the bytes that were parsed
};

// Nothing if the bytes do not begin with a status line.
std::optional<HttpResponse> parse_http(std::string_view bytes);

// The body without chunks and compression, cut to `most` bytes. Nothing if it is damaged, or encoded in a way that we
// cannot read (br). Common Crawl stores decoded bodies and keeps the header: a body that is no gzip is taken as it is.
std::optional<std::string> decoded_body(const HttpResponse& response, int64_t most);

}  // namespace tokamak
