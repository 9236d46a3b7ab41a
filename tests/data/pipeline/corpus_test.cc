// Every document of a corpus is read once, however it is cut into parts. Items that are no document are counted.
#include "data/pipeline/corpus.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "data/pipeline/corpus_reader.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

void write(const std::string& path, const std::string& text) { write_text_atomically(path, text, Kind::kData); }

std::string gzipped(const std::string& text) {
  z_stream zlib{};
  REQUIRE(deflateInit2(&zlib, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 200, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

std::string record(const std::string& type, const std::string& id, const std::string& block) {
  return str("WARC/1.0\r\nWARC-Type: ", type, "\r\nWARC-Record-ID: <urn:uuid:", id,
             ">\r\nWARC-Target-URI: http://a.example/", id,
             "\r\nWARC-Date: 2024-05-01T12:00:00Z\r\nContent-Length: ", block.size(), "\r\n\r\n", block, "\r\n\r\n");
}

std::string response(const std::string& body, const std::string& status = "200 OK",
                     const std::string& type = "text/html") {
  return str("HTTP/1.1 ", status, "\r\nContent-Type: ", type, "\r\n\r\n", body);
}

std::vector<Document> read_all(const std::vector<std::string>& inputs, int64_t part_bytes,
                               const CorpusReadOptions& options = {}) {
  const std::vector<CorpusFile> files = find_corpus(inputs);
  std::vector<Document> out;
  for (const CorpusPart& part : parts_of(files, part_bytes)) {
    const auto reader = open_corpus_part(files[part.file], part.bytes, options);
    for (Document document; reader->next(document);) out.push_back(document);
  }
  return out;
}

std::vector<std::string> ids_of(const std::vector<Document>& documents) {
  std::vector<std::string> ids;
  for (const Document& document : documents) ids.push_back(document.id);
  return ids;
}

}  // namespace

TEST_CASE("inputs are files, patterns and directories, in order, each file once") {
  const TempDir dir;
  for (const char* name : {"b.jsonl", "a.warc.gz", "c.txt", "d.json.gz", "e.warc.wet.gz", "f.jsonl.zst", "x.png"})
    write(dir.file(name), "-");
  const auto names = [&](const std::vector<std::string>& inputs) {
    std::vector<std::string> out;
    for (const CorpusFile& file : find_corpus(inputs))
      out.push_back(str(file.path.substr(dir.path().size() + 1), " ", file.source));
    return out;
  };
  CHECK(names({dir.file("c.txt"), dir.file("*.warc*")}) ==
        std::vector<std::string>{"c.txt 0", "a.warc.gz 1", "e.warc.wet.gz 1"});
  CHECK(names({dir.path()}) == std::vector<std::string>{"a.warc.gz 0", "b.jsonl 0", "c.txt 0", "d.json.gz 0",
                                                        "e.warc.wet.gz 0", "f.jsonl.zst 0"});
  CHECK_THROWS_WITH(names({dir.file("*.html")}), Catch::Contains("matches none"));
  CHECK_THROWS_WITH(names({dir.file("x.png")}), Catch::Contains("no kind that can be read"));
  CHECK_THROWS_WITH(names({dir.file("b.jsonl"), dir.path()}), Catch::Contains("is given twice"));
}

TEST_CASE("lines are read once for any size of the parts") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += str("{\"id\": \"", i, "\", \"text\": \"", std::string(static_cast<size_t>(i * 7 % 30), 'x'), "\"}\n");
  text.pop_back();  // the last line needs no end
  write(dir.file("a.jsonl"), text);
  const std::vector<std::string> whole = ids_of(read_all({dir.file("a.jsonl")}, int64_t{1} << 30));
  REQUIRE(whole.size() == 40);
  for (int64_t bytes = 1; bytes < std::ssize(text) + 2; bytes += bytes < 80 ? 1 : 37)
    CHECK(ids_of(read_all({dir.file("a.jsonl")}, bytes)) == whole);
}

TEST_CASE("records are read once for any size of the parts, and bytes that look like a member begin none") {
  const TempDir dir;
  std::string file = gzipped(record("warcinfo", "0", "software: t"));
  for (int i = 1; i <= 12; ++i) {
    std::string body = str("<p>page ", i);
    // Random bytes are stored as they are, so that the false beginning is in the compressed file, too.
    for (uint32_t k = 0, x = static_cast<uint32_t>(i); k < 3000; ++k)
      body += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    body.insert(1500, "\x1f\x8b\x08 WARC/1.0");
    body.insert(700, gzipped("a page may be about gzip"));
    file += gzipped(record("response", str(i), response(body)));
  }
  write(dir.file("a.warc.gz"), file);
  REQUIRE(file.find("\x1f\x8b\x08 WARC/1.0") != std::string::npos);
  const std::vector<std::string> whole = ids_of(read_all({dir.file("a.warc.gz")}, int64_t{1} << 30));
  REQUIRE(whole.size() == 12);
  CHECK(whole.front() == "1");
  for (const int64_t bytes : {1, 100, 3000, 3100, 3777, 10'000, 30'000})
    CHECK(ids_of(read_all({dir.file("a.warc.gz")}, bytes)) == whole);
  CHECK(parts_of(find_corpus({dir.file("a.warc.gz")}), 3000).size() == 12);
}

TEST_CASE("pages come as HTML in UTF-8, with address, date and id") {
  const TempDir dir;
  write(dir.file("a.warc"), record("response", "u-1", response("<p>caf\xe9", "200 OK", "text/html; charset=latin1")) +
                                record("conversion", "u-2", "plain text"));
  const std::vector<Document> documents = read_all({dir.file("a.warc")}, 1 << 20);
  REQUIRE(documents.size() == 2);
  CHECK(documents[0].text == "<p>caf\u00e9");
  CHECK(documents[0].is_page);
  CHECK(documents[0].id == "u-1");
  CHECK(documents[0].url == "http://a.example/u-1");
  CHECK(documents[0].metadata == R"({"date": "2024-05-01T12:00:00Z"})");
  CHECK(documents[1].text == "plain text");
  CHECK_FALSE(documents[1].is_page);
}

TEST_CASE("what is no document is dropped with its reason") {
  const TempDir dir;
  const std::string large(2000, 'x');
  write(dir.file("a.jsonl"), "{\"text\": \"good\"}\n\nnonsense\n{\"text\": \"" + large +
                                 "\"}\n{\"id\": 1}\n{\"text\": \"\xff\"}\n" + large + "\n{\"text\": \"last\"}");
  write(dir.file("b.warc"), record("response", "1", response("<p>x", "404 Not Found")) +
                                record("response", "2", response("%PDF", "200 OK", "application/pdf")) +
                                record("response", "3", "no HTTP") +
                                record("response", "4", response(large.substr(0, 1200))) +
                                record("request", "5", "GET") +
                                record("response", "6",
                                       "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                                       "Content-Encoding: br\r\n\r\nx"));
  write(dir.file("c.txt"), "one\ftwo\xff\f \n\fthree");
  std::vector<std::string> reasons, texts;
  for (const Document& document : read_all({dir.path()}, 1 << 20, {.document_bytes = 1000})) {
    if (document.dropped)
      reasons.push_back(document.reason);
    else
      texts.push_back(document.text);
  }
  CHECK(reasons == std::vector<std::string>{"input.no_json", "input.too_long", "input.no_text", "input.no_json",
                                            "input.too_long", "input.http_status", "input.no_html", "input.no_http",
                                            "input.too_long", "input.no_body"});
  CHECK(texts == std::vector<std::string>{"good", "last", "one", "two\ufffd", "three"});
}

TEST_CASE("why an earlier run dropped a document says nothing of this one") {
  const TempDir dir;
  write(dir.file("a.jsonl"), "{\"text\": \"a\", \"reason\": \"minhash\"}\n");
  const std::vector<Document> documents = read_all({dir.path()}, 1 << 20);
  REQUIRE(documents.size() == 1);
  CHECK_FALSE(documents[0].dropped);
  CHECK(documents[0].reason.empty());
}

TEST_CASE("a name that is not UTF-8 is refused: ids and reports could not hold it") {
  const TempDir dir;
  write_text_atomically(dir.file("a\xff.jsonl"), "{\"text\": \"a\"}\n", Kind::kData);
  CHECK_THROWS_WITH(find_corpus({dir.path()}), Catch::Contains("a\\xff.jsonl is not UTF-8"));
}

TEST_CASE("a document without an id has its file and place") {
  const TempDir dir;
  write(dir.file("a.jsonl"), "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  write(dir.file("b.txt"), "one\ftwo");
  const std::vector<std::string> ids = ids_of(read_all({dir.path()}, 5));
  CHECK(ids == std::vector<std::string>{dir.file("a.jsonl:0"), dir.file("a.jsonl:14"), dir.file("b.txt:1"),
                                        dir.file("b.txt:2")});
}

TEST_CASE("a file that is cut is an error with its place") {
  const TempDir dir;
  const std::string file = gzipped("{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  write(dir.file("a.jsonl.gz"), file.substr(0, file.size() - 6));
  CHECK_THROWS_WITH(read_all({dir.file("a.jsonl.gz")}, 1 << 20), Catch::Contains("a.jsonl.gz is damaged"));
}
