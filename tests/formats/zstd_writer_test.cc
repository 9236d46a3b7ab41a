// Compressed text is read again, and the file is the same for any sizes of the writes.
#include "formats/zstd_writer.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "formats/compressed_stream.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string read_all(const std::string& path) {
  const std::unique_ptr<ByteStream> stream = open_stream(path, Kind::kData);
  std::string out, block(1 << 16, '\0');
  for (int64_t count = 1; count > 0;) {
    count = stream->read(std::as_writable_bytes(std::span(block)));
    out.append(block, 0, static_cast<size_t>(count));
  }
  return out;
}

void write_in(const std::string& path, const std::string& text, size_t piece) {
  ZstdWriter writer(path, Kind::kData);
  for (size_t at = 0; at < text.size(); at += piece) writer.write(std::string_view(text).substr(at, piece));
  CHECK(writer.bytes() == std::ssize(text));
  writer.finish();
}

}  // namespace

TEST_CASE("text comes back, and the file does not depend on the pieces in which it was written") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += str("line ", i % 1013, "\n");
  write_in(dir.file("a.zst"), text, 1 << 30);
  write_in(dir.file("b.zst"), text, 777);
  CHECK(read_all(dir.file("a.zst")) == text);
  CHECK(read_text(dir.file("a.zst"), Kind::kData) == read_text(dir.file("b.zst"), Kind::kData));
  CHECK(read_text(dir.file("a.zst"), Kind::kData).size() < text.size() / 10);
}

TEST_CASE("no text is an empty frame") {
  const TempDir dir;
  write_in(dir.file("a.zst"), "", 1);
  CHECK(read_all(dir.file("a.zst")).empty());
}
