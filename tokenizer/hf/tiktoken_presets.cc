#include "tokenizer/hf/tiktoken_presets.h"

#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "base/strings.h"
#include "tokenizer/hf/tiktoken_file.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak {

namespace {

void append_specials(const std::vector<std::string>& contents, TiktokenPreset& preset) {
  for (const std::string& content : contents) {
    preset.special_tokens.push_back({content, std::ssize(preset.special_tokens)});
  }
}

// `count` tokens like <|NAME_3|>, numbered from `first`.
void append_numbered(const std::string& name, int64_t first, int64_t count, TiktokenPreset& preset) {
  for (int64_t i = first; i < first + count; ++i) append_specials({str("<|", name, "_", i, "|>")}, preset);
}

// tiktoken_ext/openai_public.py of the package tiktoken.
TiktokenPreset openai_preset(std::string_view family, std::vector<std::pair<std::string, int64_t>> specials) {
  TiktokenPreset preset;
  preset.pattern = pattern_named(family);
  preset.first_special = 0;
  preset.special_tokens = std::move(specials);
  preset.eos = "<|endoftext|>";
  return preset;
}

// models/llama3/tokenizer.py of the package llama-models.
TiktokenPreset llama3_preset() {
  TiktokenPreset preset;
  preset.pattern = pattern_named("llama3");
  append_specials({"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                   "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>",
                   "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"},
                  preset);
  append_numbered("reserved_special_token", 2, 256 - std::ssize(preset.special_tokens), preset);
  preset.bos = "<|begin_of_text|>";
  preset.eos = "<|end_of_text|>";
  return preset;
}

// models/llama4/tokenizer.py of the package llama-models.
TiktokenPreset llama4_preset() {
  TiktokenPreset preset;
  preset.pattern = pattern_named("o200k");
  append_specials({"<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                   "<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"},
                  preset);
  append_numbered("text_post_train_reserved_special_token", 0, 6, preset);
  append_specials({"<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"}, preset);
  append_numbered("text_post_train_reserved_special_token", 8, 61, preset);
  append_specials({"<|image_start|>", "<|image_end|>"}, preset);
  append_numbered("vision_reserved_special_token", 0, 2, preset);
  append_specials({"<|tile_x_separator|>", "<|tile_y_separator|>"}, preset);
  append_numbered("vision_reserved_special_token", 2, 4, preset);
  append_specials({"<|image|>"}, preset);
  append_numbered("vision_reserved_special_token", 6, 1, preset);
  append_specials({"<|patch|>"}, preset);
  append_numbered("vision_reserved_special_token", 7, 1041, preset);
  append_numbered("reasoning_reserved_special_token", 0, 8, preset);
  append_specials({"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"}, preset);
  append_numbered("reserved_special_token", 0, 2048 - std::ssize(preset.special_tokens), preset);
  preset.bos = "<|begin_of_text|>";
  preset.eos = "<|end_of_text|>";
  return preset;
}

// qwen_tokenizer.py of the package dashscope.
TiktokenPreset qwen_preset() {
  TiktokenPreset preset;
  preset.pattern = pattern_named("qwen2");
  preset.nfc = true;
  append_specials({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, preset);
  append_numbered("extra", 0, 205, preset);
  preset.eos = "<|endoftext|>";
  return preset;
}

// Runs of Han characters are pieces, and no part of other words. The rest is o200k's, but punctuation takes no slash.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define PREFIX R"(|[^\r\n\p{L}\p{N}]?)"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
constexpr std::string_view kKimiPattern =
    R"([\p{Han}]+)" PREFIX UPPER "*" LOWER "+" CONTRACTION PREFIX UPPER "+" LOWER "*" CONTRACTION
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
#undef UPPER
#undef LOWER
#undef PREFIX
#undef CONTRACTION

// tokenization_kimi.py and tokenizer_config.json of moonshotai/Kimi-K2-Instruct.
TiktokenPreset kimi_preset() {
  constexpr int64_t kFirst = 163584, kCount = 256;
  TiktokenPreset preset;
  preset.pattern = kKimiPattern;
  const std::map<int64_t, std::string> named = {{0, "[BOS]"},
                                                {1, "[EOS]"},
                                                {2, "<|im_end|>"},
                                                {3, "<|im_user|>"},
                                                {4, "<|im_assistant|>"},
                                                {6, "<|start_header_id|>"},
                                                {7, "<|end_header_id|>"},
                                                {9, "[EOT]"},
                                                {10, "<|im_system|>"},
                                                {11, "<|tool_calls_section_begin|>"},
                                                {12, "<|tool_calls_section_end|>"},
                                                {13, "<|tool_call_begin|>"},
                                                {14, "<|tool_call_argument_begin|>"},
                                                {15, "<|tool_call_end|>"},
                                                {17, "<|im_middle|>"},
                                                {254, "[UNK]"},
                                                {255, "[PAD]"}};
  for (int64_t i = 0; i < kCount; ++i) {
    const auto name = named.find(i);
    append_specials({name == named.end() ? str("<|reserved_token_", kFirst + i, "|>") : name->second}, preset);
  }
  preset.bos = "[BOS]";
  preset.eos = "[EOS]";
  return preset;
}

}  // namespace

std::string tiktoken_presets() { return "gpt2, cl100k, o200k, llama3, llama4, qwen, kimi"; }

TiktokenPreset tiktoken_preset(const std::string& name, const std::string& path) {
  if (name == "gpt2") return openai_preset("gpt2", {{"<|endoftext|>", 50256}});
  if (name == "cl100k") {
    return openai_preset("cl100k", {{"<|endoftext|>", 100257},
                                    {"<|fim_prefix|>", 100258},
                                    {"<|fim_middle|>", 100259},
                                    {"<|fim_suffix|>", 100260},
                                    {"<|endofprompt|>", 100276}});
  }
  if (name == "o200k") return openai_preset("o200k", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}});
  if (name == "llama3") return llama3_preset();
  if (name == "llama4") return llama4_preset();
  if (name == "qwen") return qwen_preset();
  if (name == "kimi") return kimi_preset();
  fail(Kind::kData, str(path, ": there is no preset '", printable(name), "' for tiktoken files"),
       str("choose one of ", tiktoken_presets()));
}

}  // namespace tokamak
