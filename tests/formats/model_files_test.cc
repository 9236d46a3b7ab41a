#include "formats/model_files.h"

#include <catch2/catch.hpp>

#include "base/f16.h"
#include "formats/safetensors_index.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

SafetensorsEntry entry(const std::string& name, const std::string& dtype, std::vector<int64_t> shape) {
  SafetensorsEntry tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

// Files whose tensors hold `bits`, over and over.
void write_file(const std::string& path, std::vector<SafetensorsEntry> tensors, uint16_t bits = 0x3C00) {
  render_safetensors_header(tensors, {});
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}}, Kind::kData);
  const std::vector<uint16_t> data(static_cast<size_t>(tensors.back().end / 2), bits);
  writer.write(std::as_bytes(std::span(data)));
  writer.finish();
}

void write_text(const std::string& path, const std::string& text) { write_text_atomically(path, text, Kind::kData); }

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    return str(error.what(), " | ", error.hint());
  }
}

std::string open_error(const TempDir& dir) {
  return error_of([&] { ModelFiles::open(dir.path()); });
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

std::string index_error(const std::string& text) {
  return error_of([&] { parse_index(text, "the index", Kind::kCheckpoint); });
}

}  // namespace

TEST_CASE("tensors fill files in their order, up to the largest size, and a larger one has its own") {
  const std::vector<SafetensorsEntry> tensors = {entry("d", "F32", {10}), entry("c", "F32", {10}),
                                                 entry("b", "F32", {100}), entry("a", "F32", {10}),
                                                 entry("e", "F32", {15})};
  const std::vector<ModelShard> shards = split_into_shards(tensors, 80);
  REQUIRE(shards.size() == 4);
  CHECK(shards[0].file == "model-00001-of-00004.safetensors");
  REQUIRE(shards[0].tensors.size() == 2);   // 40 + 40 bytes fill 80 exactly
  CHECK(shards[0].tensors[0].name == "c");  // the reference's order within a file
  CHECK(shards[1].tensors[0].name == "b");
  CHECK(shards[2].tensors[0].name == "a");
  CHECK(shards[3].tensors[0].name == "e");
  CHECK(render_index(shards) == R"({
  "metadata": {
    "total_size": 580
  },
  "weight_map": {
    "a": "model-00003-of-00004.safetensors",
    "b": "model-00002-of-00004.safetensors",
    "c": "model-00001-of-00004.safetensors",
    "d": "model-00001-of-00004.safetensors",
    "e": "model-00004-of-00004.safetensors"
  }
}
)");
  CHECK(parse_index(render_index(shards), "x", Kind::kData).at("b") == "model-00002-of-00004.safetensors");
}

TEST_CASE("a model that fits has one file") {
  const std::vector<ModelShard> shards = split_into_shards({entry("a", "F32", {10}), entry("b", "F32", {10})}, 80);
  REQUIRE(shards.size() == 1);
  CHECK(shards[0].file == "model.safetensors");
}

TEST_CASE("an index that is none is refused, by key") {
  CHECK(has(index_error("nonsense"), "the index is not valid JSON"));
  CHECK(has(index_error("[]"), "is not a JSON object, but a JSON array"));
  CHECK(has(index_error("{}"), "'weight_map' is missing; expected an object"));
  CHECK(has(index_error(R"({"weight_map": 3})"), "'weight_map' is 3; expected an object"));
  CHECK(has(index_error(R"({"weight_map": {"a": 3}})"), "'weight_map.a' is 3; expected a string"));
  for (const std::string name : {"../x.safetensors", "/x.safetensors", ".safetensors", ".x.safetensors", "x.bin", ""}) {
    CHECK(has(index_error(str(R"({"weight_map": {"a": ")", name, "\"}}")),
              str("'weight_map.a' is \"", name, "\"; expected a .safetensors")));
  }
  CHECK(has(index_error(R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})"), "the key 'a' twice"));
  CHECK(has(index_error(std::string(100, '[')), "nested more than 16 deep"));
  CHECK(has(index_error("{\"weight_map\": {\"\xFF\": \"x\"}}"), "is not valid JSON"));
}

TEST_CASE("values of F32, BF16 and F16 become f32, from whichever file holds them") {
  const TempDir dir;
  write_file(dir.file("one.safetensors"), {entry("half", "F16", {3, 2})}, f16_bits(-1.5f));
  write_file(dir.file("two.safetensors"), {entry("brain", "BF16", {200'000}), entry("other", "I16", {4})},
             bf16(0.75f).bits);
  write_text(dir.file(kModelIndex),
             R"({"weight_map": {"half": "one.safetensors", "brain": "two.safetensors", "other": "two.safetensors"}})");
  const ModelFiles model = ModelFiles::open(dir.path());
  CHECK(model.tensors().size() == 3);
  std::vector<float> values(2);
  model.read("half", 3, values);
  CHECK(values == std::vector<float>{-1.5f, -1.5f});
  values.assign(150'000, 0);  // more than a piece
  model.read("brain", 50'000, values);
  CHECK(values == std::vector<float>(150'000, 0.75f));
  CHECK(has(error_of([&] { model.read("other", 0, std::span(values).first(1)); }), "'other' is I16"));
  CHECK(has(error_of([&] { model.read("none", 0, std::span(values).first(1)); }), "no tensor 'none'"));
}

TEST_CASE("a directory without safetensors is refused, and pickles are named") {
  const TempDir dir;
  CHECK(has(open_error(dir), "has neither model.safetensors nor model.safetensors.index.json"));
  write_text(dir.file("pytorch_model-00001-of-00002.bin"), "pickle");
  CHECK(has(open_error(dir), "pytorch_model-00001-of-00002.bin, a Python pickle"));
  CHECK(has(open_error(dir), "convert it to safetensors"));
  CHECK(has(error_of([&] { ModelFiles::open(dir.file("nowhere")); }), "is no directory"));
}

TEST_CASE("files and index that disagree are refused, by tensor and file") {
  const TempDir dir;
  write_file(dir.file("one.safetensors"), {entry("a", "F32", {2})});
  write_file(dir.file("two.safetensors"), {entry("a", "F32", {2}), entry("b", "F32", {2})});
  const auto index = [&](const std::string& map) {
    write_text(dir.file(kModelIndex), "{\"weight_map\": " + map + "}");
  };
  index(R"({"a": "one.safetensors", "c": "one.safetensors"})");
  CHECK(has(open_error(dir), "tensor 'c' is in one.safetensors, which has none"));
  index(R"({"a": "one.safetensors", "b": "two.safetensors"})");
  CHECK(has(open_error(dir), "tensor 'a' is in both"));
  index(R"({"a": "gone.safetensors"})");
  CHECK(has(open_error(dir), "gone.safetensors"));
  write_file(dir.file(kModelFile), {entry("a", "F32", {2})});
  CHECK(has(open_error(dir), "both model.safetensors and model.safetensors.index.json"));
}
