// MosaicML's shards are read as it writes them, raw and compressed. A shard that contradicts itself is refused.
#include <zstd.h>

#include <algorithm>
#include <filesystem>

#include "base/digest.h"
#include "base/hash.h"
#include "data/stores/inspect.h"
#include "data/stores/mds_index.h"
#include "data/stores/source.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

std::string array_of(const std::vector<int32_t>& ids) {  // ndarray:int32, with its shape in a byte
  return std::string("\x04", 1) + static_cast<char>(ids.size()) + packed<int32_t>(ids);
}

// A shard of samples that have one column without a fixed size.
std::string shard_of(const std::vector<std::string>& samples, const std::string& configuration) {
  const auto begin = static_cast<uint32_t>(4 + 4 * (samples.size() + 1) + configuration.size());
  std::string head, body;
  put_value(head, static_cast<uint32_t>(samples.size()));
  put_value(head, begin);
  for (const std::string& sample : samples) {
    put_value(body, static_cast<uint32_t>(sample.size()));
    body += sample;
    put_value(head, static_cast<uint32_t>(begin + body.size()));
  }
  return head + configuration + body;
}

struct Written {
  std::string encoding = "ndarray:int32", size = "null", compression = "null", name = "shard.00000.mds";
  std::string hashes = "{}", zip_name = "shard.00000.mds.zstd", zip_hashes = "{}";
  int64_t samples = 2;
};

std::string index_of(const Written& w, size_t raw, size_t zip) {
  return str(
      R"({"shards":[{"column_encodings":[")", w.encoding, R"("],"column_names":["tokens"],"column_sizes":[)", w.size,
      R"(],"compression":)", w.compression, R"(,"format":"mds","hashes":[],"raw_data":{"basename":")", w.name,
      R"(","bytes":)", raw, R"(,"hashes":)", w.hashes, R"(},"samples":)", w.samples,
      R"(,"size_limit":67108864,"version":2,"zip_data":)",
      zip == 0 ? "null" : str(R"({"basename":")", w.zip_name, R"(","bytes":)", zip, R"(,"hashes":)", w.zip_hashes, "}"),
      "}],\"version\":2}");
}

const std::string kGolden =
    shard_of({array_of({1, 2, 3}), array_of({4, 5})}, std::string(181, ' '));  // its offsets: 197, 215, 229

void put_raw(const TempDir& dir, const Written& written, const std::string& shard) {
  write_file(dir.file("shard.00000.mds"), shard);
  write_file(dir.file("index.json"), index_of(written, shard.size(), 0));
}

struct Contents {
  std::vector<int32_t> ids, starts;
  bool operator==(const Contents&) const = default;
};

Contents contents_of(const TempDir& dir, TokenElement type = TokenElement::kAuto) {
  FilePool pool;
  SourceOptions source;
  source.path = dir.path();
  source.token_type = type;
  const OpenSource open = open_source(source, pool);
  CHECK(open.format == SourceFormat::kMds);
  REQUIRE(open.stores.size() == 1);
  const TokenStore& store = *open.stores[0];
  Contents out;
  out.ids.resize(static_cast<size_t>(store.tokens()));
  store.read(0, 1000, out.ids);
  store.document_starts(0, store.tokens(), 0, out.starts);
  for (int64_t first = 0; first < store.tokens(); ++first) {  // every range, across samples too
    std::vector<int32_t> piece(static_cast<size_t>(store.tokens() - first));
    store.read(first, 1000, piece);
    CHECK(std::equal(piece.begin(), piece.end(), out.ids.begin() + first));
  }
  return out;
}

const Contents kTwo = {{1, 2, 3, 4, 5}, {0, 3}};

}  // namespace

TEST_CASE("the shard that MosaicML's writer makes of two samples is read") {
  CHECK(kGolden.substr(4, 12) == from_hex("c5000000 d7000000 e5000000"));
  CHECK(kGolden.substr(197) == from_hex("0e000000 04 03 01000000 02000000 03000000 0a000000 04 02 04000000 05000000"));
  const TempDir dir;
  put_raw(dir, {}, kGolden);
  CHECK(contents_of(dir) == kTwo);
}

TEST_CASE("columns of a fixed shape and of bytes are read with the type that is known") {
  const TempDir dir;
  const auto fixed = [](const std::string& samples) {
    std::string out;
    for (const uint32_t value : {2, 20, 24, 28}) put_value(out, value);
    return out + "    " + samples;
  };
  put_raw(dir, {.encoding = "ndarray:uint16:2", .size = "4"}, fixed(packed<uint16_t>({1, 2, 3, 65000})));
  FilePool pool;
  SourceOptions source;
  source.path = dir.path();
  CHECK(open_source(source, pool).stores[0]->tokens() == 4);
  put_raw(dir, {.encoding = "bytes"}, shard_of({packed<int64_t>({1, 2, 3}), packed<int64_t>({4, 5})}, "{}"));
  CHECK(contents_of(dir, TokenElement::kInt64) == kTwo);
  check_fails(Kind::kData, {"index.json", "column_encodings", "no column holds tokens"}, [&] { contents_of(dir); });
}

TEST_CASE("a compressed shard is decompressed and checked") {
  const TempDir dir;
  std::string zip(ZSTD_compressBound(kGolden.size()), '\0');
  zip.resize(ZSTD_compress(zip.data(), zip.size(), kGolden.data(), kGolden.size(), 3));
  write_file(dir.file("shard.00000.mds.zstd"), zip);
  std::string hash = hex64(xxh3_64(std::as_bytes(std::span(kGolden))));
  Written written{.compression = "\"zstd:7\"", .hashes = str(R"({"xxh3_64":")", hash, "\"}")};
  write_file(dir.file("index.json"), index_of(written, kGolden.size(), zip.size()));
  CHECK(contents_of(dir) == kTwo);
  SourceOptions source;
  source.path = dir.path();
  FilePool pool;
  // The decompressed shard, the places of two samples and their starts.
  CHECK(open_source(source, pool).stores[0]->memory_bytes() == std::ssize(kGolden) + 2 * 8 + 3 * 8);
  const auto refused = [&](const Written& w, size_t raw, const std::vector<std::string>& words) {
    write_file(dir.file("index.json"), index_of(w, raw, zip.size()));
    check_fails(Kind::kData, words, [&] { contents_of(dir); });
  };
  refused(written, kGolden.size() + 1, {"shard.00000.mds.zstd", "decompresses to 229", "230"});
  refused(written, kGolden.size() - 1, {"shard.00000.mds.zstd", "more than 228"});
  hash[0] = hash[0] == '0' ? '1' : '0';
  written.hashes = str(R"({"xxh3_64":")", hash, "\"}");
  refused(written, kGolden.size(), {"shard.00000.mds.zstd", "xxh3_64", hash});
  refused({.compression = "\"br\""}, kGolden.size(), {"index.json", "compression", "br"});
}

TEST_CASE("a shard of gzip is read, and a damaged one is an error of its file") {
  const TempDir dir;
  std::string zip = gzip_stored(kGolden);
  const Written written{.compression = "\"gz:9\"", .zip_name = "shard.00000.mds.gz"};
  write_file(dir.file("shard.00000.mds.gz"), zip);
  write_file(dir.file("index.json"), index_of(written, kGolden.size(), zip.size()));
  CHECK(contents_of(dir) == kTwo);
  zip[zip.size() - 6] ^= 1;  // of its own checksum
  write_file(dir.file("shard.00000.mds.gz"), zip);
  check_fails(Kind::kData, {"shard.00000.mds.gz"}, [&] { contents_of(dir); });
}

TEST_CASE("verifying compares the hashes of raw and of compressed shards, and says which it cannot") {
  const TempDir dir;
  const SourceOptions source = source_at(dir.path());
  const auto sha1_of = [](const std::string& bytes) {
    const std::unique_ptr<Digest> digest = make_digest("sha1");
    digest->update(std::as_bytes(std::span(bytes)));
    return digest->hex();
  };
  put_raw(dir, {}, kGolden);
  CHECK(verify_source(source).checksums == "without checksums");
  put_raw(dir, {.hashes = str(R"({"sha1":")", sha1_of(kGolden), R"(","tiger":"00"})")}, kGolden);
  SourceReport report = verify_source(source);
  CHECK((report.problems.empty() && report.largest_id == 5));
  CHECK(report.checksums == "checked by sha1; NOT checked: tiger, unknown here");
  put_raw(dir, {.hashes = R"({"tiger":"00"})"}, kGolden);
  CHECK(verify_source(source).checksums == "no checksum was checked; NOT checked: tiger, unknown here");

  std::string other = kGolden;
  other[204] = 7;  // a token, as good as another
  put_raw(dir, {.hashes = str(R"({"sha1":")", sha1_of(kGolden), "\"}")}, other);
  report = verify_source(source);
  REQUIRE(report.problems.size() == 1);
  for (const std::string& word : {std::string("shard.00000.mds is damaged: its sha1"), sha1_of(kGolden)}) {
    CHECK(report.problems[0].find(word) != std::string::npos);
  }
  CHECK(report.checksums == "checksums differ");

  const std::string zip = gzip_stored(kGolden);
  Written written{.compression = "\"gz\"", .zip_name = "shard.00000.mds.gz"};
  written.zip_hashes = str(R"({"sha1":")", sha1_of(zip), "\"}");
  write_file(dir.file("shard.00000.mds.gz"), zip);
  write_file(dir.file("index.json"), index_of(written, kGolden.size(), zip.size()));
  CHECK(verify_source(source).checksums == "checked by sha1");
  written.zip_hashes = R"({"sha1":"11"})";
  write_file(dir.file("index.json"), index_of(written, kGolden.size(), zip.size()));
  report = verify_source(source);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("shard.00000.mds.gz is damaged: its sha1") != std::string::npos);
}

TEST_CASE("an array that names its own type is read, and two types in a shard are refused") {
  const TempDir dir;
  const std::string encoding = "ndarray";
  put_raw(dir, {.encoding = encoding}, shard_of({"!" + array_of({1, 2, 3}), "!" + array_of({4, 5})}, "{}"));
  CHECK(contents_of(dir) == kTwo);  // '!' is 33, int32
  FilePool pool;
  CHECK(open_source(source_at(dir.path()), pool).manifest.token_type == TokenType::kInt32);
  const std::string wide = std::string("A\x04\x01", 3) + packed<int64_t>({4});  // 65, int64
  const auto refused = [&](const std::string& second, const std::vector<std::string>& words) {
    put_raw(dir, {.encoding = encoding}, shard_of({"!" + array_of({1, 2, 3}), second}, "{}"));
    check_fails(Kind::kData, words, [&] { contents_of(dir); });
  };
  refused(wide, {"shard.00000.mds", "tokens of int64", "int32"});
  refused("\"" + array_of({4}), {"array of type 34", "integers"});
  refused("", {"without a type"});
}

TEST_CASE("an index that is not of the format, or unsafe, is refused by key") {
  const TempDir dir;
  const auto refused = [&](const Written& written, const std::vector<std::string>& words) {
    put_raw(dir, written, kGolden);
    check_fails(Kind::kData, words, [&] { contents_of(dir); });
  };
  refused({.encoding = "pkl"}, {"index.json", "column_encodings", "Python objects"});
  refused({.encoding = "ndarray:float32"}, {"column_encodings", "no column holds tokens", "tokens"});
  refused({.name = "../shard.00000.mds"}, {"basename", "../shard.00000.mds"});
  refused({.name = "a/b"}, {"basename", "a/b"});
  refused({.samples = 3}, {"shard.00000.mds", "2 samples", "3"});
  refused({.samples = int64_t{1} << 40}, {"samples", "1099511627776"});
  refused({.encoding = "ndarray:int32:2", .size = "7"}, {"column_sizes", "7 bytes"});
}

TEST_CASE("a shard that contradicts itself is an error with file and offsets") {
  const TempDir dir;
  const auto refused = [&](size_t at, const std::string& bytes, const std::vector<std::string>& words) {
    std::string shard = kGolden;
    shard.replace(at, bytes.size(), bytes);
    put_raw(dir, {}, shard);
    std::vector<std::string> all = words;
    all.push_back("shard.00000.mds");
    check_fails(Kind::kData, all, [&] { contents_of(dir); });
  };
  refused(8, from_hex("ffffffff"), {"sample 0", "4294967295"});
  refused(4, from_hex("00000000"), {"sample 0", "byte 0"});
  refused(12, from_hex("e4000000"), {"end at byte 228 of 229"});
  refused(197, from_hex("0f000000"), {"from byte 197 to 215", "too short"});
  refused(197, from_hex("0d000000"), {"from byte 197 to 215", "1 bytes longer"});
  refused(201, from_hex("08"), {"2 dimensions"});
  refused(202, from_hex("02"), {"array of 2 tokens in the bytes of 3"});
  put_raw(dir, {}, kGolden);
  std::filesystem::resize_file(dir.file("shard.00000.mds"), 228);
  check_fails(Kind::kData, {"shard.00000.mds", "228", "229"}, [&] { contents_of(dir); });
}
