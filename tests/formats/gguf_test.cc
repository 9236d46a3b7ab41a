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

TEST_CASE("every value of GGUF is written with the number of its type") {
  const std::vector<std::pair<GgufValue, std::string>> cases = {
      {uint8_t{200}, u32(0) + "\xC8"},
      {int8_t{-3}, u32(1) + "\xFD"},
      {uint16_t{60000}, u32(2) + "\x60\xEA"},
      {int16_t{-300}, u32(3) + "\xD4\xFE"},
      {uint32_t{4000000000}, u32(4) + u32(4000000000)},
      {int32_t{-70000}, u32(5) + u32(4294897296)},
      {1.25f, u32(6) + f32(1.25f)},
      {false, u32(7) + zeros(1)},
      {std::string("x\0y", 3), u32(8) + u64(3) + std::string("x\0y", 3)},
      {uint64_t{1} << 63, u32(10) + u64(uint64_t{1} << 63)},
      {int64_t{-2}, u32(11) + u64(UINT64_MAX - 1)},
      {0.5, u32(12) + u64(0x3FE0000000000000)},
      {GgufArray(std::vector<uint8_t>{1, 2}), u32(9) + u32(0) + u64(2) + "\x01\x02"},
      {GgufArray(std::vector<bool>{true, false}), u32(9) + u32(7) + u64(2) + "\x01" + zeros(1)},
      {GgufArray(std::vector<double>{0.5}), u32(9) + u32(12) + u64(1) + u64(0x3FE0000000000000)},
      {GgufArray(std::vector<int64_t>{}), u32(9) + u32(11) + u64(0)}};
  for (const auto& [value, bytes] : cases) {
    std::vector<GgufTensor> no_tensors;
    std::string expected = "GGUF" + u32(3) + u64(0) + u64(1) + text("key") + bytes;
    expected += zeros((32 - expected.size() % 32) % 32);
    CHECK(render_gguf_header({{"key", value}}, no_tensors) == expected);
  }
}
