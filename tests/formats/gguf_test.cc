#include "formats/gguf.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string u32(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string u64(uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string text(const std::string& value) { return u64(value.size()) + value; }
std::string f32(float value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string zeros(size_t count) { return std::string(count, '\0'); }

// A file by hand, piece by piece, as docs/gguf.md of ggml has it.
struct ByHand {
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t tensor_count = 2;
  uint64_t key_count = 4;
  std::string architecture = text("general.architecture") + u32(8) + text("llama");
  std::string flag = text("flag") + u32(7) + std::string(1, '\1');
  std::string tokens = text("tokens") + u32(9) + u32(8) + u64(2) + text("<s>") + text("a");
  std::string scores = text("scores") + u32(9) + u32(6) + u64(2) + f32(0) + f32(-1.5f);
  std::string a = text("a") + u32(2) + u64(3) + u64(2) + u32(0) + u64(0);  // (2, 3) F32: innermost extent first
  std::string b = text("b") + u32(1) + u64(5) + u32(30) + u64(32);         // (5) BF16, after 24 bytes padded to 32
  std::string data = std::string(24, 'a') + zeros(8) + std::string(10, 'b') + zeros(22);

  std::string header() const {
    std::string out =
        magic + u32(version) + u64(tensor_count) + u64(key_count) + architecture + flag + tokens + scores + a + b;
    return out + zeros((32 - out.size() % 32) % 32);
  }
  std::string file() const { return header() + data; }
};

// A function, since g++ 12 takes 80 s to find that a global one is no constant expression.
GgufKeys keys_by_hand() {
  return {{"general.architecture", std::string("llama")},
          {"flag", true},
          {"tokens", GgufArray(std::vector<std::string>{"<s>", "a"})},
          {"scores", GgufArray(std::vector<float>{0, -1.5f})}};
}
const std::vector<GgufTensor> kTensors = {{"a", {2, 3}, GgufType::kF32}, {"b", {5}, GgufType::kBF16}};

std::string error_of(const std::string& bytes) {
  const TempDir dir;
  write_text_atomically(dir.file("x.gguf"), bytes, Kind::kData);
  try {
    GgufFile(dir.file("x.gguf"), Kind::kCheckpoint);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    CHECK(std::string(error.what()).find("x.gguf") != std::string::npos);
    return error.what();
  }
}

void refuses(const ByHand& file, const std::string& words) {
  const std::string error = error_of(file.file());
  INFO(error);
  CHECK(error.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a GGUF file is written byte for byte as specified") {
  const TempDir dir;
  GgufWriter writer(dir.file("x.gguf"), keys_by_hand(), kTensors, Kind::kCheckpoint);
  const std::string a(24, 'a'), b(10, 'b');
  writer.write(std::as_bytes(std::span(a).first(7)));
  writer.write(std::as_bytes(std::span(a).subspan(7)));
  writer.write(std::as_bytes(std::span(b)));
  const std::string expected = ByHand().file();
  CHECK(writer.finish() == static_cast<int64_t>(expected.size()));
  CHECK(read_text(dir.file("x.gguf"), Kind::kData) == expected);
}

TEST_CASE("a GGUF file is read back") {
  const TempDir dir;
  write_text_atomically(dir.file("x.gguf"), ByHand().file(), Kind::kData);
  const GgufFile file(dir.file("x.gguf"), Kind::kCheckpoint);
  CHECK(file.header().keys == keys_by_hand());
  REQUIRE(file.header().tensors.size() == 2);
  CHECK(file.find("c") == nullptr);
  const GgufTensor* b = file.find("b");
  REQUIRE(b != nullptr);
  CHECK(b->shape == std::vector<int64_t>{5});
  CHECK(b->type == GgufType::kBF16);
  CHECK(file.find("a")->shape == std::vector<int64_t>{2, 3});
  std::string bytes(4, '\0');
  file.read_bytes(*b, 6, std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == "bbbb");
}

TEST_CASE("a header longer than the first read of a GGUF file is read whole") {
  const TempDir dir;
  std::vector<std::string> tokens(100'000, "0123456789abcdef");
  const GgufKeys keys = {{"tokens", GgufArray(tokens)}};
  GgufWriter writer(dir.file("x.gguf"), keys, {}, Kind::kCheckpoint);
  CHECK(writer.finish() > 2'000'000);
  CHECK(GgufFile(dir.file("x.gguf"), Kind::kCheckpoint).header().keys == keys);
}

TEST_CASE("every value of GGUF survives writing and reading") {
  const GgufKeys keys = {{"u8", uint8_t{200}},
                         {"i8", int8_t{-3}},
                         {"u16", uint16_t{60000}},
                         {"i16", int16_t{-300}},
                         {"u32", uint32_t{4000000000}},
                         {"i32", int32_t{-70000}},
                         {"f32", 1.25f},
                         {"bool", false},
                         {"string", std::string("x\0y", 3)},
                         {"u64", uint64_t{1} << 63},
                         {"i64", int64_t{-1} << 40},
                         {"f64", 0.1},
                         {"a8", GgufArray(std::vector<uint8_t>{1, 2})},
                         {"bools", GgufArray(std::vector<bool>{true, false, true})},
                         {"f64s", GgufArray(std::vector<double>{0.1})},
                         {"none", GgufArray(std::vector<int64_t>{})}};
  std::vector<GgufTensor> tensors;
  const std::string bytes = render_gguf_header(keys, tensors);
  const auto size = static_cast<int64_t>(bytes.size());
  CHECK(parse_gguf_header(bytes, size, "x", Kind::kData).keys == keys);
}

TEST_CASE("damage to a GGUF header is named") {
  CHECK(error_of(ByHand().file()).empty());
  const auto with = [](auto ByHand::*part, const auto& value) {
    ByHand file;
    file.*part = value;
    return file;
  };
  refuses(with(&ByHand::magic, std::string("GGUX")), "does not begin with 'GGUF'");
  refuses(with(&ByHand::version, 2U), "version 2");
  refuses(with(&ByHand::tensor_count, uint64_t{1} << 60), "1633771873 dimensions");  // "aaaa"
  refuses(with(&ByHand::key_count, uint64_t{1} << 60), "a key of 562949953421312 bytes");
  refuses(with(&ByHand::architecture, u64(uint64_t{1} << 62) + "x"), "a key of 4611686018427387904 bytes");
  refuses(with(&ByHand::architecture, text("") + u32(7) + std::string(1, '\1')), "has no name");
  refuses(with(&ByHand::flag, text("flag") + u32(7) + std::string(1, '\2')), "truth value 2");
  refuses(with(&ByHand::flag, text("flag") + u32(13) + zeros(8)), "value of type 13");
  refuses(with(&ByHand::flag, text("tokens") + u32(7) + zeros(1)), "'tokens' comes twice");
  refuses(with(&ByHand::tokens, text("tokens") + u32(9) + u32(9) + u64(1)), "array of values of type 9");
  refuses(with(&ByHand::tokens, text("tokens") + u32(9) + u32(6) + u64(UINT64_MAX)), "ends within its header");
  refuses(with(&ByHand::flag, text("general.alignment") + u32(4) + u32(33)), "general.alignment");
}

TEST_CASE("damage to a tensor of a GGUF file is named") {
  const auto with_b = [](const std::string& b) {
    ByHand file;
    file.b = b;
    return file;
  };
  refuses(with_b(text("a") + u32(1) + u64(5) + u32(30) + u64(32)), "tensor 'a' comes twice");
  refuses(with_b(text(std::string(65, 'x')) + u32(1) + u64(5) + u32(30) + u64(32)), "name of 65 bytes");
  refuses(with_b(text("b") + u32(5) + zeros(40) + u32(30) + u64(32)), "'b': 5 dimensions");
  refuses(with_b(text("b") + u32(1) + u64(0) + u32(30) + u64(32)), "'b': the extent 0");
  refuses(with_b(text("b") + u32(2) + u64(1ULL << 40) + u64(1ULL << 40) + u32(30) + u64(32)),
          "'b': its size overflows");
  refuses(with_b(text("b") + u32(1) + u64(5) + u32(8) + u64(32)), "'b': type 8");
  refuses(with_b(text("b") + u32(1) + u64(5) + u32(30) + u64(0)), "'b' lies at byte 0 of the data, expected 32");
  refuses(with_b(text("b") + u32(1) + u64(5) + u32(30) + u64(64)), "'b' lies at byte 64 of the data, expected 32");
  refuses(with_b(text("b") + u32(1) + u64(50) + u32(30) + u64(32)), "'b' of 100 bytes at 32 goes beyond");
  ByHand longer;
  longer.data += "x";
  refuses(longer, "the file has");
  ByHand shorter;
  shorter.data.pop_back();
  refuses(shorter, "'b' of 10 bytes at 32 goes beyond");
}
