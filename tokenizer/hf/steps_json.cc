#include "tokenizer/hf/steps_json.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

SearchPattern read_pattern(const JsonValue& json) {
  const std::vector<std::string> keys = json.keys();
  if (keys.size() != 1 || (keys[0] != "String" && keys[0] != "Regex")) {
    json.refuse("expected one member, 'String' or 'Regex'");
  }
  if (json[keys[0]].text().empty()) json.refuse("an empty pattern is not supported");
  return {keys[0] == "String" ? SearchPattern::Kind::kText : SearchPattern::Kind::kRegex, json[keys[0]].text()};
}

std::string read_character(const JsonValue& json) {
  std::string text = json.text();
  if (text.empty() || decode_utf8(text).length != std::ssize(text)) json.refuse("expected one character");
  return text;
}

SplitBehavior read_behavior(const JsonValue& json) {
  const std::string name = json.text();
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  json.refuse("this behavior is not known");
}

PrependScheme read_prepend(const JsonValue& step) {
  const std::string name = step["prepend_scheme"].text_or("always");
  if (!step["add_prefix_space"].truth_or(true) && name != "never") {
    step["add_prefix_space"].refuse(str("prepend_scheme is ", name));
  }
  if (name == "never") return PrependScheme::kOff;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "always") return PrependScheme::kAlways;
  step["prepend_scheme"].refuse("expected never, first or always");
}

// Appends the steps of `json`, in order; `list` is the member that holds those of a Sequence.
template <class Read>
void for_each_step(const JsonValue& json, const std::string& list, const Read& read) {
  if (!json.present()) return;
  const std::string type = json["type"].text();
  if (type != "Sequence") {
    read(json, type);
    return;
  }
  expect_only(json, {"type", list});
  for (const JsonValue& step : json[list].items()) for_each_step(step, list, read);
}

NormalizerStep normalizer_step(const JsonValue& json, const std::string& type) {
  NormalizerStep step;
  if (type == "NFC" || type == "NFKC") {
    expect_only(json, {"type"});
    step.kind = type == "NFC" ? NormalizerStep::Kind::kNfc : NormalizerStep::Kind::kNfkc;
  } else if (type == "Prepend") {
    expect_only(json, {"type", "prepend"});
    step.kind = NormalizerStep::Kind::kPrepend;
    step.content = json["prepend"].text();
  } else if (type == "Replace") {
    expect_only(json, {"type", "pattern", "content"});
    step.kind = NormalizerStep::Kind::kReplace;
    step.pattern = read_pattern(json["pattern"]);
    step.content = json["content"].text();
  } else if (type == "Strip") {
    expect_only(json, {"type", "strip_left", "strip_right"});
    step.kind = NormalizerStep::Kind::kStrip;
    step.strip_left = json["strip_left"].truth();
    step.strip_right = json["strip_right"].truth();
  } else {
    json["type"].refuse("this normalizer is not supported");
  }
  return step;
}

PreTokenizerStep pre_tokenizer_step(const JsonValue& json, const std::string& type) {
  using Step = PreTokenizerStep::Kind;
  PreTokenizerStep step;
  if (type == "ByteLevel") {
    expect_only(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    step.kind = Step::kByteLevel;
    step.add_prefix_space = json["add_prefix_space"].truth_or(true);
    step.use_regex = json["use_regex"].truth_or(true);
  } else if (type == "Digits") {
    expect_only(json, {"type", "individual_digits"});
    step.kind = Step::kDigits;
    step.individual_digits = json["individual_digits"].truth_or(false);
  } else if (type == "Split") {
    expect_only(json, {"type", "pattern", "behavior", "invert"});
    step.kind = Step::kSplit;
    step.pattern = read_pattern(json["pattern"]);
    step.behavior = read_behavior(json["behavior"]);
    step.invert = json["invert"].truth();
  } else if (type == "Metaspace") {
    expect_only(json, {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    step.kind = Step::kMetaspace;
    step.replacement = read_character(json["replacement"]);
    step.prepend = read_prepend(json);
    step.split = json["split"].truth_or(true);
  } else if (type == "Whitespace") {
    expect_only(json, {"type"});
    step.kind = Step::kWhitespace;
  } else if (type == "Punctuation") {
    expect_only(json, {"type", "behavior"});
    step.kind = Step::kPunctuation;
    if (json["behavior"].present()) step.behavior = read_behavior(json["behavior"]);
  } else {
    json["type"].refuse("this pre-tokenizer is not supported");
  }
  return step;
}

DecoderStep decoder_step(const JsonValue& json, const std::string& type) {
  using Step = DecoderStep::Kind;
  DecoderStep step;
  if (type == "ByteLevel") {
    expect_only(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    step.kind = Step::kByteLevel;
  } else if (type == "ByteFallback" || type == "Fuse") {
    expect_only(json, {"type"});
    step.kind = type == "Fuse" ? Step::kFuse : Step::kByteFallback;
  } else if (type == "Replace") {
    expect_only(json, {"type", "pattern", "content"});
    step.kind = Step::kReplace;
    step.pattern = read_pattern(json["pattern"]);
    if (step.pattern.kind == SearchPattern::Kind::kRegex) {
      json["pattern"].refuse("a decoder's regular expression is not supported");
    }
    step.content = json["content"].text();
  } else if (type == "Strip") {
    expect_only(json, {"type", "content", "start", "stop"});
    step.kind = Step::kStrip;
    step.content = read_character(json["content"]);
    step.start = json["start"].whole();
    step.stop = json["stop"].whole();
  } else if (type == "Metaspace") {
    expect_only(json, {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    step.kind = Step::kMetaspace;
    step.replacement = read_character(json["replacement"]);
    step.prepend = read_prepend(json);
  } else if (type == "BPEDecoder") {
    expect_only(json, {"type", "suffix"});
    step.kind = Step::kBpe;
    step.suffix = json["suffix"].text_or("</w>");
  } else {
    json["type"].refuse("this decoder is not supported");
  }
  return step;
}

// `single` of a TemplateProcessing: special tokens around one sequence, A.
void read_template(const JsonValue& json, std::vector<int32_t>& prefix, std::vector<int32_t>& suffix) {
  expect_only(json, {"type", "single", "pair", "special_tokens"});
  int64_t sequences = 0;
  for (const JsonValue& item : json["single"].items()) {
    expect_only(item, {"SpecialToken", "Sequence"});
    if (!item["Sequence"].is_missing()) {
      if (item["Sequence"]["id"].text() != "A") item["Sequence"]["id"].refuse("`single` has the sequence A only");
      ++sequences;
      continue;
    }
    const JsonValue token = json["special_tokens"][item["SpecialToken"]["id"].text()];
    for (const JsonValue& id : token["ids"].items()) {
      (sequences == 0 ? prefix : suffix).push_back(static_cast<int32_t>(id.whole(0, INT32_MAX - 1)));
    }
  }
  if (sequences != 1) json["single"].refuse("expected one sequence");
}

// ["<s>", 0] of RobertaProcessing and BertProcessing.
int32_t read_token_and_id(const JsonValue& json) {
  const std::vector<JsonValue> items = json.items();
  if (items.size() != 2) json.refuse("expected a token and its id");
  return static_cast<int32_t>(items[1].whole(0, INT32_MAX - 1));
}

}  // namespace

void expect_only(const JsonValue& object, std::initializer_list<std::string_view> known) {
  for (const std::string& key : object.keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) object[key].refuse("this field is not known");
  }
}

std::vector<NormalizerStep> read_normalizer(const JsonValue& json) {
  std::vector<NormalizerStep> steps;
  for_each_step(json, "normalizers",
                [&](const JsonValue& step, const std::string& type) { steps.push_back(normalizer_step(step, type)); });
  return steps;
}

std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonValue& json) {
  std::vector<PreTokenizerStep> steps;
  for_each_step(json, "pretokenizers", [&](const JsonValue& step, const std::string& type) {
    if (!steps.empty() && steps.back().kind == PreTokenizerStep::Kind::kByteLevel) {
      step["type"].refuse("a step behind ByteLevel would see its printable characters, which is not supported");
    }
    steps.push_back(pre_tokenizer_step(step, type));
  });
  return steps;
}

std::vector<DecoderStep> read_decoder(const JsonValue& json) {
  std::vector<DecoderStep> steps;
  for_each_step(json, "decoders",
                [&](const JsonValue& step, const std::string& type) { steps.push_back(decoder_step(step, type)); });
  return steps;
}

void read_post_processor(const JsonValue& json, std::vector<int32_t>& prefix, std::vector<int32_t>& suffix) {
  for_each_step(json, "processors", [&](const JsonValue& step, const std::string& type) {
    if (type == "ByteLevel") {
      expect_only(step, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    } else if (type == "TemplateProcessing") {
      read_template(step, prefix, suffix);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      expect_only(step, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      prefix.push_back(read_token_and_id(step["cls"]));
      suffix.push_back(read_token_and_id(step["sep"]));
    } else {
      step["type"].refuse("this post-processor is not supported");
    }
  });
}

}  // namespace tokamak
