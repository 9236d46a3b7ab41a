#include "interop/hf_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/listed.h"
#include "base/printable.h"
#include "formats/flat_slice.h"
#include "formats/json.h"
#include "interop/weight_stream.h"
#include "model/parameters.h"
#include "tokenizer/hf/tokenizer_json.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += str(i > 0 ? ", " : "", shape[i]);
  return text + ")";
}

bool same_shape(const Shape& shape, const std::vector<int64_t>& other) {
  if (shape.rank() != static_cast<int>(other.size())) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != other[axis]) return false;
  }
  return true;
}

// Old files contain the rotary frequencies, which follow from the config.
bool is_rotary_table(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

std::string name_of(const std::string& tensor, const SafetensorsFile& file) {
  return str("tensor '", printable(tensor), "' in ", std::filesystem::path(file.path()).filename().string());
}

}  // namespace

HfModel HfModel::open(const std::string& directory) {
  if (!is_directory(directory)) fail(Kind::kCheckpoint, directory + " is not a directory");
  const std::string path = directory + "/config.json";
  if (!exists(path)) {
    fail(Kind::kCheckpoint, path + " is missing", "give a directory as `save_pretrained` of transformers writes it");
  }
  HfConfig description = parse_hf_config(read_text(path, Kind::kCheckpoint), path);
  return {directory, std::move(description), ModelFiles::open(directory)};
}

HfModel::HfModel(std::string directory, HfConfig description, ModelFiles files)
    : directory_(std::move(directory)), description_(std::move(description)), files_(std::move(files)) {
  check_tensors();
}

void HfModel::check_tensors() {
  std::vector<std::string> problems;
  std::set<std::string, std::less<>> wanted;
  std::set<std::string> types;
  for (const Unit& unit : make_param_table(config()).units) {
    for (const Matrix& matrix : unit.matrices) {
      for (const Param& param : matrix.parts) {
        wanted.insert(param.name);
        const auto found = files_.tensors().find(param.name);
        if (found == files_.tensors().end()) {
          problems.push_back(str("tensor '", param.name, "' ", param.shape.text(), " is missing"));
          continue;
        }
        const SafetensorsEntry& entry = *found->second.entry;
        if (!same_shape(param.shape, entry.shape)) {
          problems.push_back(str(name_of(param.name, *found->second.file), " has the shape ",
                                 printable(shape_text(entry.shape)), ", by config.json it should be ",
                                 param.shape.text()));
        } else if (!is_readable_as_float(entry.dtype)) {
          problems.push_back(
              str(name_of(param.name, *found->second.file), " is ", entry.dtype, "; F32, BF16 and F16 are supported"));
        }
        types.insert(entry.dtype);
      }
    }
  }
  for (const auto& [name, tensor] : files_.tensors()) {
    if (wanted.count(name) > 0) continue;
    if (is_rotary_table(name)) {
      left_out_.push_back(printable(name) + " (follows from config.json)");
    } else if (name == kHead && config().tie_word_embeddings) {
      left_out_.push_back(str(name, " (tied: equal to ", kEmbedding, ")"));
    } else {
      problems.push_back(str(name_of(name, *tensor.file), " is none of ", description_.architecture, "'s"));
    }
  }
  if (!problems.empty()) {
    fail(Kind::kCheckpoint,
         str(directory_, " does not hold the model of its config.json:", listed(std::move(problems))));
  }
  if (!left_out_.empty()) check_tied_head();
  const bool one = types.size() == 1;
  type_ = one && *types.begin() == "BF16"  ? WeightType::kBF16
          : one && *types.begin() == "F16" ? WeightType::kF16
                                           : WeightType::kF32;
}

// If a tied head is stored, it must equal the embedding; otherwise one of the two would be lost.
void HfModel::check_tied_head() const {
  if (!config().tie_word_embeddings || files_.tensors().count(kHead) == 0) return;
  const int64_t count = config().vocab_size * config().hidden_size;
  const SafetensorsEntry& head = *files_.tensors().find(kHead)->second.entry;
  bool equal = head.count() == count && is_readable_as_float(head.dtype);
  std::vector<float> a, b;
  for (int64_t at = 0; equal && at < count; at += kElementsAtOnce) {
    a.resize(std::min(kElementsAtOnce, count - at));
    b.resize(a.size());
    files_.read(kHead, at, a);
    files_.read(kEmbedding, at, b);
    equal = a == b;
  }
  if (equal) return;
  fail(Kind::kCheckpoint,
       str(directory_, ": 'tie_word_embeddings' is true, but tensor '", kHead, "' is not equal to '", kEmbedding, "'"),
       "set tie_word_embeddings to false in its config.json if the head is its own");
}

ReadParam HfModel::weights() const {
  return [this](const std::string& name, int64_t first, std::span<float> out) { files_.read(name, first, out); };
}

std::string HfModel::tokenizer_path() const { return find_tokenizer(directory_); }

bool HfModel::adds_bos() const {
  const std::string path = directory_ + "/tokenizer_config.json";
  bool is_llama = false;
  if (exists(path)) {
    const JsonDocument config = JsonDocument::read(path, Kind::kCheckpoint);
    const JsonValue given = config["add_bos_token"];
    if (!given.is_missing() && !given.is_null()) return given.truth();
    is_llama = starts_with(config["tokenizer_class"].text_or(""), "LlamaTokenizer");
  }
  const std::string file = tokenizer_path();
  return file.ends_with("/tokenizer.json") ? read_tokenizer_json(file).begins_with_bos() : is_llama;
}

void load(const HfModel& model, const ShardPlace& place, const std::vector<UnitSlices>& units) {
  const ReadParam read = model.weights();
  for (const UnitSlices& unit : units) {
    for (const KindSlice& slice : unit.slices) {
      int64_t begin = slice.count() * place.index;
      for (const Tensor& part : slice.parts) {
        if (slice.kind == "master") {
          read_flat(*unit.unit, begin, std::span(part.as<float>(), static_cast<size_t>(part.count())), read);
        } else {
          std::memset(part.data(), 0, static_cast<size_t>(part.bytes()));
        }
        begin += part.count();
      }
    }
  }
}

}  // namespace tokamak
