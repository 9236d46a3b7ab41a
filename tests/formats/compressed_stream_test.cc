// Compressed text is read whole, from any number of members or frames. A damaged file is an error with its place.
#include "formats/compressed_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>

#include "base/lines.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string read_all(const std::string& path, size_t step) {
  const std::unique_ptr<ByteStream> stream = open_stream(path, Kind::kData);
  std::string text, block(step, '\0');
  int64_t position = 0;
  while (const int64_t got = stream->read(std::as_writable_bytes(std::span(block)))) {
    text.append(block, 0, static_cast<size_t>(got));
    CHECK(stream->file_position() >= position);
    position = stream->file_position();
  }
  CHECK(position == InputFile(path, Kind::kData).size());
  return text;
}

struct Format {
  std::string extension;
  std::string (*compress)(const std::string&);
};
const Format kFormats[] = {{".gz", gzip}, {".zst", zstd}};

std::string prose(int64_t lines) {
  std::string text;
  for (int64_t i = 0; i < lines; ++i) text += str("line ", i, " of ", i * i % 1009, "\n");
  return text;
}

void check_fails(Kind kind, const std::vector<std::string>& words, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    for (const std::string& word : words) {
      INFO(error.what() << " should say " << word);
      CHECK(std::string(error.what()).find(word) != std::string::npos);
    }
    return;
  }
  FAIL("no error");
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

}  // namespace

TEST_CASE("members and frames follow one another, and the blocks of reading may end anywhere") {
  const TempDir dir;
  const std::string text = prose(100'000);
  for (const auto& [extension, compress] : kFormats) {
    const std::string path = dir.file("a.txt" + extension);
    write_file(path, compress(text) + compress("") + compress("two\n") + compress(text));
    for (const size_t step : {size_t{1000}, size_t{1} << 20}) CHECK(read_all(path, step) == text + "two\n" + text);
  }
  write_file(dir.file("b.gz"), gzip("one") + std::string(600'000, '\0'));  // as tape archives pad
  CHECK(read_all(dir.file("b.gz"), 100) == "one");
  write_file(dir.file("plain.txt"), text);
  CHECK(read_all(dir.file("plain.txt"), 999) == text);
}

TEST_CASE("a compressed file that is cut anywhere is an error that names it and the offset") {
  const TempDir dir;
  const std::string text = prose(10);
  for (const auto& [extension, compress] : kFormats) {
    const std::string whole = compress(text);
    const std::string path = dir.file("a.txt" + extension);
    for (size_t size = 0; size < whole.size(); ++size) {
      write_file(path, whole.substr(0, size));
      check_fails(Kind::kData, {path, str("at byte ", size), "of the compressed file"}, [&] { read_all(path, 100); });
    }
  }
}

TEST_CASE("damage in a compressed file never passes as text") {
  const TempDir dir;
  const std::string text = prose(50);
  for (const auto& [extension, compress] : kFormats) {
    const std::string whole = compress(text);
    const std::string path = dir.file("a.txt" + extension);
    int64_t refused = 0;
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      write_file(path, damaged);
      try {
        const std::string read = read_all(path, 1000);
        REQUIRE(read == text);  // a byte of the header without meaning
      } catch (const Error& error) {
        REQUIRE(error.kind() == Kind::kData);
        REQUIRE(std::string(error.what()).find(path) != std::string::npos);
        ++refused;
      }
    }
    CHECK(refused > static_cast<int64_t>(whole.size()) - 12);
  }
  write_file(dir.file("b.gz"), gzip("one") + "garbage");
  check_fails(Kind::kData, {dir.file("b.gz"), "byte"}, [&] { read_all(dir.file("b.gz"), 100); });
  write_file(dir.file("c.gz"), "no gzip at all");
  check_fails(Kind::kData, {dir.file("c.gz"), "header"}, [&] { read_all(dir.file("c.gz"), 100); });
}

TEST_CASE("a zstd frame with less than its header promises is damaged, however much is read at once") {
  using namespace std::string_literals;
  const TempDir dir;
  // A header that promises 44,393 bytes, and an empty last block, where the library's streaming does not compare.
  const std::string frame = "\x28\xb5\x2f\xfd\x70\x69\xac\x01\x00\x00"s;
  for (const std::string& before : {""s, zstd("a frame before it")}) {
    write_file(dir.file("x.zst"), before + frame);
    for (const size_t step : {1, 100}) {
      check_fails(Kind::kData, {dir.file("x.zst"), "a frame has 0 bytes; its header says 44393"},
                  [&] { read_all(dir.file("x.zst"), step); });
    }
    check_fails(Kind::kData, {dir.file("x.zst"), "is damaged"}, [&] { read_all(dir.file("x.zst"), 1 << 17); });
  }
}

TEST_CASE("a bomb of one endless line ends at the limit of a line") {
  const TempDir dir;
  const std::string bomb(8 << 20, 'a');
  for (const auto& [extension, compress] : kFormats) {
    const std::string path = dir.file("bomb" + extension);
    const std::string bytes = compress(bomb);
    CHECK(bytes.size() < 10'000);
    write_file(path, bytes);
    LineReader lines(open_stream(path, Kind::kData));
    std::string line;
    check_fails(Kind::kData, {path + ":1", "a line of more than"}, [&] { lines.next(line, 1 << 20); });
    CHECK(line.size() <= 1 << 20);
  }
}
