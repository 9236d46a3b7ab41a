#include "formats/safetensors.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/rng.h"
#include "support/temp_dir.h"
#include "support/test_data.h"

using namespace tokamak;

namespace {

std::string file_of(const std::string& header, const std::string& data, int64_t claimed = -1) {
  const uint64_t length = claimed >= 0 ? static_cast<uint64_t>(claimed) : header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

// The bytes as a file, opened; the error's text, or "" if it opens.
std::string error_of(const std::string& bytes) {
  const TempDir dir;
  write_text_atomically(dir.file("x.safetensors"), bytes, Kind::kData);
  try {
    SafetensorsFile(dir.file("x.safetensors"), Kind::kCheckpoint);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    const std::string what = error.what();
    CHECK(what.find("x.safetensors") != std::string::npos);
    return what;
  }
}

std::string error_of_header(const std::string& header, int data_bytes) {
  return error_of(file_of(header, std::string(static_cast<size_t>(data_bytes), '\0')));
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

const std::string kGoldenHeader =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("a":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]}}  )";
const unsigned char kGoldenData[16] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0x80, 0x3f, 0, 0x40, 0x40, 0x40, 0x80, 0x40};

std::string golden() {
  return file_of(kGoldenHeader, std::string(reinterpret_cast<const char*>(kGoldenData), sizeof(kGoldenData)));
}

}  // namespace

TEST_CASE("a written file is, byte for byte, that of the reference writer") {
  const TempDir dir;
  std::vector<SafetensorsEntry> tensors(2);
  tensors[0] = {"a", "BF16", {2, 2}};
  tensors[1] = {"b", "F32", {2}};
  sort_as_reference(tensors);
  SafetensorsWriter writer(dir.file("golden"), tensors, {{"format", "pt"}}, Kind::kCheckpoint);
  const float b[2] = {1, 2};
  const bf16 a[4] = {bf16(1.0f), bf16(2.0f), bf16(3.0f), bf16(4.0f)};
  writer.write(std::as_bytes(std::span(b)));
  writer.write(std::as_bytes(std::span(a)));
  const FileDigest digest = writer.finish();
  const std::string bytes = read_text(dir.file("golden"), Kind::kData);
  REQUIRE(kGoldenHeader.size() == 144);
  CHECK(bytes == golden());
  CHECK(digest.bytes == 8 + 144 + 16);
  CHECK(digest.xxh3_128 == xxh3_128_hex(std::as_bytes(std::span(bytes))));
}

TEST_CASE("the reference's order is widest dtype first, then by name") {
  std::vector<SafetensorsEntry> tensors = {
      {"z", "U8", {1}}, {"y", "F32", {1}}, {"x", "BF16", {1}}, {"w", "I64", {1}}, {"v", "F32", {1}}};
  sort_as_reference(tensors);
  std::string order;
  for (const auto& tensor : tensors) order += tensor.name;
  CHECK(order == "wvyxz");
}

TEST_CASE("a file is read back by name, whole or in part, in its own type only") {
  const TempDir dir;
  write_text_atomically(dir.file("golden"), golden(), Kind::kData);
  const SafetensorsFile file(dir.file("golden"), Kind::kData);
  CHECK(file.metadata().at("format") == "pt");
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "b");
  CHECK(file.values<float>("b") == std::vector<float>{1, 2});
  const auto a = file.values<bf16>("a");
  CHECK(to_float(a.at(3)) == 4.0f);
  std::vector<bf16> middle(2);
  file.read<bf16>(file.at("a"), 1, middle);
  CHECK(to_float(middle[0]) == 2.0f);
  CHECK(to_float(middle[1]) == 3.0f);
  CHECK(file.find("c") == nullptr);
  CHECK_THROWS_WITH(file.at("c"), Catch::Contains("has no tensor 'c'"));
  CHECK_THROWS_WITH(file.at(std::string(1000, 'c')), Catch::EndsWith("'" + std::string(80, 'c') + "...'"));
  CHECK_THROWS_WITH(file.values<float>("a"), Catch::Contains("'a' is BF16, expected F32"));
  CHECK_THROWS(file.read<bf16>(file.at("a"), 3, middle));
  CHECK_THROWS(file.read<bf16>(file.at("a"), -1, middle));
}

TEST_CASE("the files that the reference library wrote are read") {
  const SafetensorsFile file(test_data() + "/llama_gqa_tied.safetensors", Kind::kData);
  CHECK(file.values<float>("model.norm.weight").size() == 32);
  CHECK(file.at("t16/loss").shape.empty());
  CHECK(file.values<float>("t16/loss").size() == 1);
  CHECK(file.values<int32_t>("adamw/input_ids").size() == 20 * 2 * 16);
}

TEST_CASE("scalars, empty tensors and an empty file are legal") {
  CHECK(error_of_header("{}", 0).empty());
  CHECK(error_of_header("{\"s\":" + entry("F32", "[]", "[0,4]") + "}", 4).empty());
  CHECK(error_of_header("{\"e\":" + entry("F32", "[3,0]", "[0,0]") + ",\"s\":" + entry("F4", "[2]", "[0,1]") + "}", 1)
            .empty());
  CHECK(error_of_header(R"({"__metadata__":{}}    )", 0).empty());
}

TEST_CASE("a file that is no safetensors file is refused for what it is") {
  CHECK(has(error_of("1234567"), "7 bytes are too few"));
  CHECK(has(error_of(file_of("{}", "", 100'000'001)), "longer than safetensors allows"));
  CHECK(has(error_of(file_of("{}", "", INT64_MAX)), "longer than safetensors allows"));
  CHECK(has(error_of(std::string(8, '\xff')), "longer than safetensors allows"));
  CHECK(has(error_of(file_of("{}", "", 3)), "its header says 3 bytes, the whole file has 10"));
  CHECK(has(error_of_header("", 0), "does not begin with '{'"));
  CHECK(has(error_of_header(" {}", 0), "does not begin with '{'"));
  CHECK(has(error_of_header("\xEF\xBB\xBF{}", 0), "does not begin with '{'"));
  CHECK(has(error_of_header("{", 0), "not valid JSON"));
  CHECK(has(error_of_header("{}{}", 0), "not valid JSON"));
  CHECK(has(error_of_header("{\"a\xff\":1}", 0), "UTF-8"));
}

TEST_CASE("a header of another schema is refused, naming the tensor") {
  const std::string good = entry("F32", "[1]", "[0,4]");
  CHECK(error_of_header("{\"w\":" + good + "}", 4).empty());
  const auto error_with = [](const std::string& w) { return error_of_header("{\"w\":" + w + "}", 4); };
  CHECK(has(error_with("1"), "'w' is 1; expected an object"));
  CHECK(has(error_with("[1]"), "'w' is [1]; expected an object"));
  CHECK(has(error_with("{}"), "'w.dtype' is missing"));
  CHECK(has(error_with(R"({"dtype":"F32","shape":[1]})"), "'w.data_offsets' is missing"));
  CHECK(has(error_with(R"({"dtype":4,"shape":[1],"data_offsets":[0,4]})"), "'w.dtype' is 4; expected a string"));
  CHECK(has(error_with(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), "'w.shape' is 1; expected a list"));
  CHECK(has(error_with(R"({"dtype":"F32","shape":[1],"more":[1],"data_offsets":[0,4]})"), "data_offsets alone"));
  CHECK(has(error_with(entry("F31", "[1]", "[0,4]")), "tensor 'w' has the unknown dtype 'F31'"));
  for (const char* extent : {"-1", "1.0", "[1]", "true"}) {
    CHECK(has(error_with(entry("F32", str("[", extent, "]"), "[0,4]")), str("'w.shape[]' is ", extent)));
  }
  CHECK(has(error_with(entry("F32", "[1]", "[0]")), "'w.data_offsets' is [0]; expected two"));
  CHECK(has(error_with(entry("F32", "[1]", "[0,4,4]")), "'w.data_offsets' is [0,4,4]; expected two"));
  CHECK(has(error_with(entry("F32", "[1]", "[0,18446744073709551615]")), "'w.data_offsets[]' is 18446744073709551615"));
  CHECK(has(error_of_header("{\"w\":" + good + ",\"w\":" + entry("F32", "[1]", "[4,8]") + "}", 8), "'w' twice"));
  CHECK(has(error_with(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "'dtype' twice"));
  CHECK(has(error_of_header(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "'a' twice"));
  CHECK(has(error_of_header(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' twice"));
  CHECK(has(error_of_header(R"({"__metadata__":{"a":1}})", 0), "'__metadata__.a' is 1; expected a string"));
  CHECK(has(error_of_header(R"({"__metadata__":null})", 0), "'__metadata__' is null; expected an object"));
  CHECK(has(error_with(std::string(100000, '[')), "nested more than 16 deep"));
}

TEST_CASE("data with holes, overlaps, wrong sizes or trailing bytes is refused") {
  const auto two = [](const std::string& a, const std::string& b) {
    return "{\"a\":" + entry("F32", "[2]", a) + ",\"b\":" + entry("F32", "[2]", b) + "}";
  };
  CHECK(error_of_header(two("[0,8]", "[8,16]"), 16).empty());
  CHECK(error_of_header(two("[8,16]", "[0,8]"), 16).empty());
  CHECK(has(error_of_header(two("[0,8]", "[12,20]"), 20),
            "'b' lies at bytes [12, 20), but the data before it ends at 8"));
  CHECK(has(error_of_header(two("[0,8]", "[4,12]"), 12), "'b' lies at bytes [4, 12)"));
  CHECK(has(error_of_header(two("[0,8]", "[0,8]"), 8), "'b' lies at bytes [0, 8)"));
  CHECK(has(error_of_header(two("[4,12]", "[12,20]"), 20),
            "'a' lies at bytes [4, 12), but the data before it ends at 0"));
  CHECK(has(error_of_header(two("[0,8]", "[8,0]"), 8), "'b' lies at bytes [8, 0)"));
  CHECK(has(error_of_header(two("[0,8]", "[8,15]"), 15), "'b': shape [2] of F32 takes 8 bytes, its offsets span 7"));
  CHECK(has(error_of_header(two("[0,8]", "[8,17]"), 17), "'b': shape [2] of F32 takes 8 bytes, its offsets span 9"));
  CHECK(has(error_of_header(two("[0,8]", "[8,16]"), 15), "its tensors end at byte 16 of 15"));
  CHECK(has(error_of_header(two("[0,8]", "[8,16]"), 17), "its tensors end at byte 16 of 17"));
  CHECK(has(error_of_header("{\"f\":" + entry("F4", "[3]", "[0,1]") + "}", 1), "has no size in bytes"));
  const std::string huge = "[4294967296,4294967296,4]";
  CHECK(has(error_of_header("{\"h\":" + entry("F32", huge, "[0,0]") + "}", 0), "has no size in bytes"));
  CHECK(has(error_of_header("{\"h\":" + entry("F32", "[4611686018427387904]", "[0,0]") + "}", 0), "has no size"));
}

TEST_CASE("the writer refuses tensors that would be misaligned, unknown or doubled") {
  const auto render = [](std::vector<SafetensorsEntry> tensors) { render_safetensors_header(tensors, {}); };
  CHECK_THROWS_WITH(render({{"a", "BF16", {1}}, {"b", "F32", {1}}}),
                    Catch::Contains("b would be misaligned at byte 2"));
  CHECK_THROWS_WITH(render({{"a", "F31", {1}}}), Catch::Contains("F31"));
  CHECK_THROWS_WITH(render({{"a", "F32", {1}}, {"a", "F32", {1}}}), Catch::Contains("a twice"));
  CHECK_THROWS_WITH(render({{"__metadata__", "F32", {1}}}), Catch::Contains("twice"));
}

TEST_CASE("a writer reports too few or too many bytes") {
  const TempDir dir;
  const std::vector<std::byte> bytes(5);
  SafetensorsWriter writer(dir.file("a"), {{"a", "U8", {4}}}, {}, Kind::kData);
  CHECK_THROWS_WITH(writer.write(bytes), Catch::Contains("too many bytes"));
  writer.write(std::span(bytes).first(3));
  CHECK_THROWS_WITH(writer.finish(), Catch::Contains("of"));
}

TEST_CASE("names are escaped as JSON wants and come back as they were") {
  const TempDir dir;
  const std::string name = "a \"quoted\"\n\\ name, \xC3\xA9";
  SafetensorsWriter writer(dir.file("a"), {{name, "U8", {0}}}, {{name, name}}, Kind::kData);
  writer.finish();
  const SafetensorsFile file(dir.file("a"), Kind::kData);
  CHECK(file.find(name) != nullptr);
  CHECK(file.metadata().at(name) == name);
}

// Every accepted file must be wholly readable; the sanitizers watch the bounds.
TEST_CASE("files damaged at random are refused or read, and never more than that") {
  const TempDir dir;
  const RandomStream random(7, "fuzz");
  const std::string alphabet =
      "{}[]\",:0123456789-eE. \\u\xff\x80"
      "FB3264shapedtoff_";
  uint64_t draw = 0;
  const auto below = [&](size_t n) { return static_cast<size_t>(random.word(draw++)) % n; };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = golden();
    const size_t changes = 1 + below(3);
    for (size_t c = 0; c < changes && !bytes.empty(); ++c) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.word(draw++));
          break;
        case 1:
          bytes[at] = alphabet[below(alphabet.size())];
          break;
        case 2:
          bytes.erase(at, 1 + below(8));
          break;
        default:
          bytes.insert(at, 1, alphabet[below(alphabet.size())]);
      }
    }
    // Half of them with a length that fits again, so that the damage reaches the header's own checks.
    if (below(2) == 0 && bytes.size() >= 24) {
      const uint64_t length = bytes.size() - 24;
      std::memcpy(bytes.data(), &length, 8);
    }
    {
      OutputFile out(dir.file("x"), Kind::kData);
      out.write(bytes);
      out.close();
    }
    try {
      const SafetensorsFile file(dir.file("x"), Kind::kCheckpoint);
      for (const SafetensorsEntry& tensor : file.tensors()) {
        std::vector<std::byte> all(static_cast<size_t>(tensor.bytes()));
        file.read_bytes(tensor, 0, all);
      }
      ++accepted;
    } catch (const Error& error) {
      REQUIRE(error.kind() == Kind::kCheckpoint);
    }
  }
  CHECK(accepted > 100);  // damage to the data alone is not this reader's to find
  CHECK(accepted < 10000);
}
