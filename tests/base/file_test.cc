#include "base/file.h"

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "support/temp_dir.h"

using namespace tokamak;

TEST_CASE("a text file is written completely and reads back the same") {
  const TempDir dir;
  write_text_atomically(dir.file("a.txt"), "one\ntwo", Kind::kData);
  CHECK(read_text(dir.file("a.txt"), Kind::kData) == "one\ntwo");
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.txt"});  // no .tmp left
}

TEST_CASE("a failure names the path and the reason, and has its caller's kind") {
  const TempDir dir;
  try {
    InputFile missing(dir.file("none"), Kind::kCheckpoint);
    FAIL("opened a file that is not there");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kCheckpoint);
    CHECK(std::string(e.what()).find(dir.file("none")) != std::string::npos);
    CHECK(std::string(e.what()).find("No such file") != std::string::npos);
  }
}

TEST_CASE("reading past the end is an error, not a short read") {
  const TempDir dir;
  write_text_atomically(dir.file("a"), "12345", Kind::kData);
  const InputFile file(dir.file("a"), Kind::kData);
  std::vector<std::byte> buffer(3);
  CHECK_NOTHROW(file.read_at(2, buffer));
  CHECK_THROWS_AS(file.read_at(3, buffer), Error);
}

TEST_CASE("XXH3 checksums are those of the reference implementation") {
  CHECK(xxh3_64({}) == 0x2d06800538d394c2ull);
  CHECK(xxh3_128_hex({}) == "99aa06d3014798d86001c324468d497f");
  const std::string text = "tokamak";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  Hasher hasher;
  hasher.update(bytes.first(3));
  hasher.update(bytes.subspan(3));
  CHECK(hasher.hex128() == xxh3_128_hex(bytes));
  CHECK(parse_hex64(hex64(0x0123456789abcdefull)) == 0x0123456789abcdefull);
  CHECK_THROWS_AS(parse_hex64("xyz"), Error);
}
