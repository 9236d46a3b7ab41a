// Hugging Face directories that are right, and all the ways in which one can be wrong.
#include "interop/hf_model.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>

#include "base/file.h"
#include "interop/export_hf.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

// A directory of a tiny model; change what the test is about, then write().
struct Model {
  explicit Model(bool tied = false) {
    config.hidden_size = 8;
    config.intermediate_size = 12;
    config.num_hidden_layers = 1;
    config.num_attention_heads = 2;
    config.vocab_size = 10;
    config.tie_word_embeddings = tied;
    tensors = hf_tensors(config, WeightType::kF32);
  }

  SafetensorsEntry& at(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }
  void add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape) {
    SafetensorsEntry& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
  }

  // Byte i of each tensor's data is `fill(name)`.
  void write() {
    write_text_atomically(dir.file("config.json"), render_hf_config(config, WeightType::kF32, {}), Kind::kData);
    sort_as_reference(tensors);
    render_safetensors_header(tensors, {});
    SafetensorsWriter writer(dir.file("model.safetensors"), tensors, {{"format", "pt"}}, Kind::kData);
    for (const SafetensorsEntry& tensor : tensors) {
      const bool other = tensor.name == "lm_head.weight" && head_differs;
      const std::string bytes(static_cast<size_t>(tensor.bytes()), other ? '\x3E' : '\x3F');
      writer.write(std::as_bytes(std::span(bytes)));
    }
    writer.finish();
  }

  std::string error() {
    write();
    try {
      HfModel::open(dir.path());
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == Kind::kCheckpoint);
      return error.what();
    }
  }

  TempDir dir;
  ModelConfig config;
  std::vector<SafetensorsEntry> tensors;
  bool head_differs = false;
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

constexpr const char* kQuery = "model.layers.0.self_attn.q_proj.weight";

}  // namespace

TEST_CASE("a whole model opens, and fills slices of any number of ranks") {
  Model model;
  model.write();
  const HfModel hf = HfModel::open(model.dir.path());
  CHECK(hf.type() == WeightType::kF32);
  CHECK(hf.left_out().empty());
  std::vector<float> values(3);
  hf.weights()(kQuery, 5, values);
  uint32_t bits = 0x3F3F3F3F;
  CHECK(values[2] == std::bit_cast<float>(bits));
}

TEST_CASE("a tensor that is missing, too many, or of a wrong shape or dtype is named with what was expected") {
  Model missing;
  missing.remove(kQuery);
  CHECK(has(missing.error(), "tensor 'model.layers.0.self_attn.q_proj.weight' (8, 8) is missing"));

  Model extra;
  extra.add("model.layers.1.mlp.up_proj.weight", "F32", {2});
  CHECK(has(extra.error(), "tensor 'model.layers.1.mlp.up_proj.weight' in "));
  CHECK(has(extra.error(), "is none of LlamaForCausalLM's"));

  Model shape;
  shape.at(kQuery).shape = {8, 4};
  CHECK(has(shape.error(), "has the shape (8, 4), by config.json it should be (8, 8)"));

  Model dtype;
  dtype.at(kQuery).dtype = "I32";
  CHECK(has(dtype.error(), "'model.layers.0.self_attn.q_proj.weight' in "));
  CHECK(has(dtype.error(), "is I32; F32, BF16 and F16 are supported"));

  Model many;
  many.config.num_hidden_layers = 4;
  CHECK(has(many.error(), "and 22 more"));
}

TEST_CASE("rotary tables are left out, and so is the head of a tied model if it is the embedding") {
  Model rotary;
  rotary.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2});
  rotary.write();
  CHECK(HfModel::open(rotary.dir.path()).left_out().size() == 1);

  Model tied(true);
  tied.add("lm_head.weight", "F32", {10, 8});
  tied.write();
  CHECK(HfModel::open(tied.dir.path()).left_out().size() == 1);
  tied.head_differs = true;
  CHECK(has(tied.error(), "'lm_head.weight' is not equal to 'model.embed_tokens.weight'"));

  Model untied;
  untied.remove("lm_head.weight");
  CHECK(has(untied.error(), "'lm_head.weight' (10, 8) is missing"));
}

TEST_CASE("tokenizer_config.json, or else its class, decides whether texts begin with the BOS token") {
  Model model;
  model.write();
  const HfModel opened = HfModel::open(model.dir.path());
  CHECK_FALSE(opened.adds_bos());
  const auto says = [&](const std::string& text) {
    write_text_atomically(model.dir.file("tokenizer_config.json"), text, Kind::kData);
    return opened.adds_bos();
  };
  CHECK(says(R"({"add_bos_token": true, "tokenizer_class": "Qwen2Tokenizer"})"));
  CHECK_FALSE(says(R"({"add_bos_token": false, "tokenizer_class": "LlamaTokenizer"})"));
  CHECK(says(R"({"add_bos_token": null, "tokenizer_class": "LlamaTokenizerFast"})"));
  CHECK_FALSE(says(R"({"tokenizer_class": "PreTrainedTokenizerFast"})"));
  CHECK_THROWS_WITH(says(R"({"add_bos_token": "yes"})"),
                    Catch::EndsWith("'add_bos_token' is \"yes\"; expected true or false"));
}

TEST_CASE("a model without config.json, or with a file cut short, is refused") {
  Model model;
  model.write();
  std::filesystem::resize_file(model.dir.file("model.safetensors"), 1000);
  try {
    HfModel::open(model.dir.path());
    FAIL("it opened");
  } catch (const Error& error) {
    CHECK(has(error.what(), "model.safetensors"));
  }
  remove_file(model.dir.file("config.json"), Kind::kData);
  CHECK_THROWS_WITH(HfModel::open(model.dir.path()), Catch::Contains("config.json is missing"));
}
