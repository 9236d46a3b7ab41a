#include "tokenizer/train_bytes/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json split_by(const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

Json pre_tokenizer(const BytesPattern& pattern) {
  if (!pattern.splits.empty()) {
    Json steps = Json::array();
    for (const std::string& split : pattern.splits) steps.push_back(split_by(split));
    steps.push_back(byte_level(false));
    return {{"type", "Sequence"}, {"pretokenizers", steps}};
  }
  switch (pattern.digits_first) {
    case Digits::kOfPattern:
      return byte_level(true);
    case Digits::kSingle:  // as SmolLM and StarCoder write it
      return {{"type", "Sequence"},
              {"pretokenizers", {Json{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)}}};
    case Digits::kUpToThree:
      return {{"type", "Sequence"}, {"pretokenizers", {split_by(R"(\p{N}{1,3})"), byte_level(true)}}};
  }
  return nullptr;
}

}  // namespace

std::string render_tokenizer_json(const LearnedMerges& learned, const BytesPattern& pattern,
                                  const SpecialTokens& special) {
  Json added = Json::array();
  for (size_t id = 0; id < special.all.size(); ++id) {
    added.push_back({{"id", id},
                     {"content", special.all[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  // A vocabulary as an ordered object would be searched at each insertion, so it is built as text.
  std::string vocab = "{", merges = "[";
  for (size_t id = 0; id < learned.pieces.size(); ++id) {
    vocab += str(id == 0 ? "\n" : ",\n", "      ", Json(learned.pieces[id]).dump(), ": ", id);
  }
  for (size_t i = 0; i < learned.merges.size(); ++i) {
    const auto [left, right] = learned.merges[i];
    merges += str(i == 0 ? "\n" : ",\n", "      ", Json(learned.pieces[left] + " " + learned.pieces[right]).dump());
  }
  vocab += "\n    }";
  merges += learned.merges.empty() ? "]" : "\n    ]";
  constexpr const char* kVocab = "the vocabulary's place";
  constexpr const char* kMerges = "the merges' place";
  const Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", pre_tokenizer(pattern)},
      {"post_processor",
       {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", pattern.whole_pieces},
        {"vocab", kVocab},
        {"merges", kMerges}}}};
  std::string text = tokenizer.dump(2) + "\n";
  // The last two strings of the file: no special token can be taken for them.
  const std::string merges_place = Json(kMerges).dump(), vocab_place = Json(kVocab).dump();
  text.replace(text.rfind(merges_place), merges_place.size(), merges);
  text.replace(text.rfind(vocab_place, text.size() - merges.size()), vocab_place.size(), vocab);
  return text;
}

std::string render_tokenizer_config(const SpecialTokens& special) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!special.bos.empty()) config["bos_token"] = special.bos;
  if (!special.eos.empty()) config["eos_token"] = special.eos;
  config["clean_up_tokenization_spaces"] = false;
  return config.dump(2) + "\n";
}

}  // namespace tokamak
