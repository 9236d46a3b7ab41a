// Web archives, HTTP responses, pages and lines of documents, as functions of bytes.
#include <cstring>

#include "base/strings.h"
#include "base/utf8.h"
#include "data/pipeline/document_line.h"
#include "data/web/charset.h"
#include "data/web/http.h"
#include "data/web/main_content.h"
#include "data/web/page.h"
#include "data/web/warc.h"
#include "data/web/whole_content.h"
#include "formats/compressed_stream.h"
#include "fuzz/judge.h"

namespace tokamak::fuzz {

namespace {

// At most `kMost` bytes of any record are kept, and every byte of the file is read once.
Verdict warc(std::string_view bytes) {
  constexpr int64_t kMost = 100;
  return judge(Kind::kData, [&] {
    WarcReader reader(open_stream(put("x.warc", bytes), Compression::kNone, Kind::kData), kMost);
    int64_t kept = 0;
    for (WarcRecord record; reader.next(record);) {
      require(std::ssize(record.block) == std::min(record.bytes, kMost));
      kept += std::ssize(record.block) + std::ssize(record.uri);
    }
    require(kept <= std::ssize(bytes));
  });
}

std::string warc_sample() {
  const std::string block = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>text";
  return str("WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 3\r\n\r\nx: \r\n\r\n",
             "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a/\r\n",
             "WARC-Truncated: length\r\nContent-Length: ", block.size(), "\r\n\r\n", block, "\r\n\r\n");
}

Verdict http(std::string_view bytes) {
  constexpr int64_t kMost = 10'000;
  const std::string copy(bytes);  // so that a read beyond it is found
  const std::optional<HttpResponse> response = parse_http(copy);
  if (!response) return Verdict::kRefused;
  const std::optional<std::string> body = decoded_body(*response, kMost);
  if (!body) return Verdict::kRefused;
  require(std::ssize(*body) <= kMost);
  return Verdict::kAccepted;
}

std::string http_sample() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=\"latin1\"\r\nTransfer-Encoding: chunked\r\n"
         "Content-Encoding: identity\r\n\r\n5;x=y\r\nhello\r\n0a\r\n, world at\r\n0\r\nA: b\r\n\r\n";
}

// Whatever a page is, its text is valid UTF-8, and no extractor runs away.
Verdict html(std::string_view bytes) {
  const std::string text = page_to_utf8(bytes, "");
  require(is_valid_utf8(text));
  Page::Problem problem{};
  const std::optional<Page> page = Page::parse(text, {.nodes = 5000, .depth = 200}, problem);
  if (!page) return Verdict::kRefused;
  static thread_local MainContent main_content;  // its patterns take long to compile
  static thread_local WholeContent whole_content;
  const std::string main_text = main_content.extract(*page), whole_text = whole_content.extract(*page);
  const std::string both = union_of_lines(main_text, whole_text);
  require(is_valid_utf8(main_text) && is_valid_utf8(whole_text) && is_valid_utf8(both));
  require(both.size() >= main_text.size() || main_text.empty());
  return Verdict::kAccepted;
}

std::string html_sample() {
  return "<!doctype html><html lang=en><head><meta charset=utf-8><title>T</title><script>var x='<p>';</script></head>"
         "<body class=\"page\"><nav id=menu><ul><li><a href=/>Home</a></ul></nav><article class='post-content'>"
         "<h1>Title</h1><p>One sentence, of some <b>length</b>, so that it &amp; others count&#46; It ends here.</p>"
         "<table><tr><td>cell<td>more</table><pre>a\n b</pre><p>Second<br>line &eacute;</p></article>"
         "<div class=comments><p>nice</p></div><footer>(c)</footer></body></html>";
}

// A line that is read is written, and read again as the same document.
Verdict document(std::string_view bytes) {
  if (bytes.find('\n') != std::string_view::npos) return Verdict::kRefused;
  DocumentLineReader reader("text");
  Document first, second;
  std::string line, again;
  LineProblem problem;
  if (!reader.read(bytes, first, problem)) {
    require(!problem.what.empty());
    return Verdict::kRefused;
  }
  append_document_line(first, line);
  require(is_valid_utf8(line) && line.find('\n') == std::string::npos);
  require(reader.read(line, second, problem));
  require(second.text == first.text && second.id == first.id && second.url == first.url);
  append_document_line(second, again);
  require(again == line);
  return Verdict::kAccepted;
}

std::string document_sample() {
  return R"({"text": "one\n\u00e9 \ud83d\ude00", "id": "a", "url": "http://b/", "language": "en", "reason": "r",)"
         R"( "attributes": {"words": 3, "x": 1e-5}, "metadata": {"date": "2024", "n": [1, {"a": null}]}})";
}

constexpr double kAny = 1.01;  // any bytes are a page, and most are the end of a response

constexpr Target kWebTargets[] = {
    {"warc", warc, warc_sample, 1000, 0.6},
    {"http", http, http_sample, 1000, kAny},
    {"html", html, html_sample, 300, kAny, true},
    {"document", document, document_sample, 3000, 0.6},
};

}  // namespace

std::span<const Target> web_targets() { return kWebTargets; }

}  // namespace tokamak::fuzz
