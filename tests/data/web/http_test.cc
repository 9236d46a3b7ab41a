// HTTP responses as crawlers store them.
#include "data/web/http.h"

#include <zlib.h>

#include <catch2/catch.hpp>

#include "formats/inflate.h"

using namespace tokamak;

namespace {

std::string compressed(const std::string& text, int window) {
  z_stream zlib{};
  REQUIRE(deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&zlib, text.size()) + 64, '\0');
  zlib.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

constexpr int kGzip = 15 + 16, kZlib = 15;

std::optional<std::string> body_of(const std::string& headers, const std::string& body, int64_t most = 1 << 20) {
  const std::string bytes = "HTTP/1.1 200 OK\r\n" + headers + "\r\n" + body;
  const std::optional<HttpResponse> response = parse_http(bytes);
  REQUIRE(response);
  return decoded_body(*response, most);
}

}  // namespace

TEST_CASE("status, type and charset are read") {
  const auto response =
      parse_http("HTTP/1.0 404 Not Found\r\ncontent-type: Text/HTML; Charset=\"ISO-8859-1\"; x=y\r\n\r\nbody");
  REQUIRE(response);
  CHECK(response->status == 404);
  CHECK(response->content_type == "text/html");
  CHECK(response->charset == "iso-8859-1");
  CHECK(response->body == "body");
  const auto bare = parse_http("HTTP/2 200\n\nbody");
  REQUIRE(bare);
  CHECK(bare->status == 200);
  CHECK(bare->content_type.empty());
  CHECK(bare->body == "body");
}

TEST_CASE("what is not HTTP is none") {
  CHECK_FALSE(parse_http(""));
  CHECK_FALSE(parse_http("<html>"));
  CHECK_FALSE(parse_http("HTTP/1.1"));
  CHECK_FALSE(parse_http("HTTP/1.1 abc"));
}

TEST_CASE("chunks are joined, and a stored body without them is kept") {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  CHECK(body_of(chunked, "4\r\nWiki\r\n6;a=b\r\npedia \r\n0\r\n\r\n") == "Wikipedia ");
  CHECK(body_of(chunked, "<html>text</html>") == "<html>text</html>");
  CHECK(body_of(chunked, "ff\r\nshort") == "short");  // cut
  CHECK(body_of(chunked, "ffffffffffffffff\r\nshort") == "short");
}

TEST_CASE("compressed bodies are decompressed, within the limit") {
  const std::string text = "<html>" + std::string(100'000, 'a');
  CHECK(body_of("Content-Encoding: gzip\r\n", compressed(text, kGzip)) == text);
  CHECK(body_of("Content-Encoding: DEFLATE\r\n", compressed(text, kZlib)) == text);
  CHECK(body_of("Content-Encoding: gzip\r\n", compressed(text, kGzip), 1000) == text.substr(0, 1000));
  CHECK(body_of("Content-Encoding: gzip\r\n", text) == text);  // stored decoded
  const std::string whole = compressed(text, kGzip);
  const std::optional<std::string> cut = body_of("Content-Encoding: gzip\r\n", whole.substr(0, whole.size() / 2));
  CHECK((!cut || text.starts_with(*cut)));
  CHECK_FALSE(body_of("Content-Encoding: gzip\r\n", whole.substr(0, 10) + "garbage garbage"));
}

TEST_CASE("a bomb of zeros costs no more than the limit") {
  std::string bomb = compressed(std::string(64 << 20, '\0'), kGzip);
  CHECK(bomb.size() < 100'000);
  const std::optional<std::string> body = body_of("Content-Encoding: gzip\r\n", bomb, 1 << 20);
  REQUIRE(body);
  CHECK(body->size() == 1 << 20);
  CHECK(body->capacity() < 4 << 20);
}

TEST_CASE("an encoding that we cannot read has no body, unless the crawler decoded it") {
  CHECK_FALSE(body_of("Content-Encoding: br\r\n", "\x8b\x02\x80text"));
  CHECK(body_of("Content-Encoding: br\r\n", " <!doctype html>x") == " <!doctype html>x");
  CHECK(body_of("Content-Encoding: identity\r\n", "x") == "x");
}
