// Records of web archives, and what is not one.
#include "data/web/warc.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string record(const std::string& type, const std::string& block, const std::string& more = "") {
  return str("WARC/1.0\r\nWARC-Type: ", type, "\r\nwarc-target-uri: http://a.example/", type,
             "\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2024-05-01T00:00:00Z\r\n", more,
             "Content-Length: ", block.size(), "\r\n\r\n", block, "\r\n\r\n");
}

std::vector<WarcRecord> read_all(const TempDir& dir, const std::string& bytes, int64_t most = 1 << 20) {
  const std::string path = dir.file("a.warc");
  std::ofstream(path, std::ios::binary) << bytes;
  WarcReader reader(std::make_unique<FileStream>(path, Kind::kData), most);
  std::vector<WarcRecord> records;
  for (WarcRecord next; reader.next(next);) records.push_back(next);
  return records;
}

}  // namespace

TEST_CASE("records have their headers, in any case of letters, and their bytes") {
  const TempDir dir;
  const std::string binary("a\0b\r\n\r\nWARC/1.0\r\n", 17);
  const auto records =
      read_all(dir, record("warcinfo", "") + record("response", binary, "WARC-Identified-Payload-Type: text/html\r\n") +
                        record("conversion", "text", "WARC-Truncated: length\r\n"));
  REQUIRE(records.size() == 3);
  CHECK(records[0].block.empty());
  CHECK(records[1].type == "response");
  CHECK(records[1].uri == "http://a.example/response");
  CHECK(records[1].id == "<urn:uuid:1>");
  CHECK(records[1].date == "2024-05-01T00:00:00Z");
  CHECK(records[1].payload_type == "text/html");
  CHECK(records[1].block == binary);
  CHECK(records[2].block == "text");
}

TEST_CASE("a block beyond the limit is cut, and the next record is found") {
  const TempDir dir;
  const auto records = read_all(dir, record("response", std::string(1000, 'x')) + record("response", "y"), 10);
  REQUIRE(records.size() == 2);
  CHECK(records[0].block == std::string(10, 'x'));
  CHECK(records[0].bytes == 1000);
  CHECK(records[1].block == "y");
}

TEST_CASE("an empty file has no records") {
  const TempDir dir;
  CHECK(read_all(dir, "").empty());
  CHECK(read_all(dir, "\r\n\r\n").empty());
}

TEST_CASE("a damaged record is an error with file and number") {
  const TempDir dir;
  const std::string good = record("response", "good");
  const auto refuses = [&](const std::string& bad, const std::string& reason) {
    INFO(bad.substr(0, 80));
    CHECK_THROWS_WITH(read_all(dir, good + bad), Catch::Contains("a.warc, record 2") && Catch::Contains(reason));
  };
  refuses("HTTP/1.1 200 OK\r\n\r\n", "begins with 'HTTP/1.1 200 OK'");
  refuses("WARC/1.0\r\nWARC-Type: response\r\n\r\nx", "no Content-Length");
  refuses("WARC/1.0\r\nContent-Length: -5\r\n\r\nx", "Content-Length is '-5'");
  refuses("WARC/1.0\r\nContent-Length: 99999999999999999999\r\n\r\nx", "Content-Length is '99999999999999999999'");
  refuses("WARC/1.0\r\nContent-Length: 5x\r\n\r\nx", "Content-Length is '5x'");
  refuses("WARC/1.0\r\nContent-Length: 10\r\n\r\nabc", "ends 7 bytes before the record does");
  refuses("WARC/1.0\r\nContent-Length: 10\r\n", "ends in its header");
  refuses("WARC/1.0\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n", "more than 65536 bytes");
  std::string many = "WARC/1.0\r\n";
  for (int i = 0; i < 2000; ++i) many += "A: b\r\n";
  refuses(many + "\r\n", "more than 1000 lines");
}

TEST_CASE("a length larger than the file takes no memory") {
  const TempDir dir;
  CHECK_THROWS_WITH(read_all(dir, "WARC/1.0\r\nContent-Length: 9223372036854775807\r\n\r\nabc", INT64_MAX),
                    Catch::Contains("bytes before the record does"));
}
