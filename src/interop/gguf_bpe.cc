#include "interop/gguf_bpe.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/hf/byte_map.h"

namespace tokamak {

namespace {

enum class IgnoreMerges { kNo, kYes };

struct PreTokenizerName {
  std::string_view family;  // of scanner_family()
  IgnoreMerges ignore_merges;
  const char* pre;
};

// As in llama.cpp 00ad355e, src/llama-vocab.cpp. A pattern with both flags has a name for each.
constexpr std::array<PreTokenizerName, 9> kNames = {{{"gpt2", IgnoreMerges::kNo, "gpt-2"},
                                                     {"llama3", IgnoreMerges::kYes, "llama-bpe"},
                                                     {"llama3", IgnoreMerges::kNo, "dbrx"},
                                                     {"qwen2", IgnoreMerges::kNo, "qwen2"},
                                                     {"qwen35", IgnoreMerges::kNo, "qwen35"},
                                                     {"o200k", IgnoreMerges::kNo, "gpt-4o"},
                                                     {"tekken", IgnoreMerges::kYes, "tekken"},
                                                     {"smollm", IgnoreMerges::kNo, "smollm"},
                                                     {"deepseek3", IgnoreMerges::kNo, "deepseek-v3"}}};

[[noreturn]] void refuse(const HfTokenizer& tokenizer, const std::string& what) {
  fail(Kind::kConfig, str(tokenizer.path(), ": llama.cpp cannot express ", what), "export to hf instead");
}

// The patterns by which the file's pre-tokenizer splits, one after another.
std::vector<std::string> patterns_of(const HfTokenizer& tokenizer) {
  using Kind = PreTokenizerStep::Kind;
  const std::vector<PreTokenizerStep>& steps = tokenizer.spec().pre_tokenizer;
  if (steps.empty() || steps.back().kind != Kind::kByteLevel) {
    refuse(tokenizer, "a pre-tokenizer that does not end with ByteLevel");
  }
  std::vector<std::string> patterns;
  for (const PreTokenizerStep& step : steps) {
    const bool isolated = (step.behavior == SplitBehavior::kIsolated && !step.invert) ||
                          (step.behavior == SplitBehavior::kRemoved && step.invert);
    if (step.kind == Kind::kSplit && step.pattern.kind == SearchPattern::Kind::kRegex && isolated) {
      patterns.push_back(step.pattern.text);
    } else if (step.kind == Kind::kDigits) {
      patterns.emplace_back(step.individual_digits ? kDigitPattern : kDigitsPattern);
    } else if (step.kind != Kind::kByteLevel) {
      refuse(tokenizer, str("this sequence of ", steps.size(), " pre-tokenizers"));
    } else if (step.add_prefix_space) {
      refuse(tokenizer, "add_prefix_space of ByteLevel");
    } else if (step.use_regex) {
      patterns.emplace_back(pattern_named("gpt2"));
    }
  }
  return patterns;
}

// llama.cpp's flag may differ from the file's only if no entry needs it.
void expect_same_flag(const HfTokenizer& tokenizer, IgnoreMerges theirs, const char* pre) {
  const bool ours = tokenizer.spec().model.whole_pieces;
  if (ours == (theirs == IgnoreMerges::kYes)) return;
  if (const int64_t count = unreachable_entries(tokenizer); count > 0) {
    refuse(tokenizer, str("ignore_merges=", ours ? "true" : "false", " with the pre-tokenizer '", pre, "': ", count,
                          " entries of the vocabulary are made by no merges, so they would become other ids"));
  }
}

std::string name_of_pre_tokenizer(const HfTokenizer& tokenizer) {
  const std::vector<std::string> patterns = patterns_of(tokenizer);
  const std::vector<std::string_view> views(patterns.begin(), patterns.end());
  const std::string_view family = scanner_family(views);
  const PreTokenizerName* found = nullptr;
  for (const PreTokenizerName& known : kNames) {
    if (known.family != family) continue;
    const bool same = tokenizer.spec().model.whole_pieces == (known.ignore_merges == IgnoreMerges::kYes);
    if (found == nullptr || same) found = &known;
  }
  if (found == nullptr) refuse(tokenizer, str("the pattern ", printable(join(patterns, "  then  "), 200)));
  expect_same_flag(tokenizer, found->ignore_merges, found->pre);
  return found->pre;
}

std::vector<std::string> normalizer_warnings(const HfTokenizer& tokenizer) {
  std::vector<std::string> warnings;
  for (const NormalizerStep& step : tokenizer.spec().normalizer) {
    if (step.kind != NormalizerStep::Kind::kNfc) refuse(tokenizer, "its normalizer");
    warnings.push_back("llama.cpp does not normalize text to NFC");
  }
  return warnings;
}

// The pieces as bytes, and its merges without the shortcut of whole pieces.
ByteBpeModel merging_model(const TokenizerSpec& spec) {
  ByteBpeModel model;
  for (int32_t id = 0; id < spec.model.pieces.ids(); ++id) {
    const std::string_view piece = spec.model.pieces[id];
    model.pieces.push_back(bytes_of_printable(piece).value_or(std::string(piece)));
  }
  model.merges = spec.model.merges;
  return model;
}

}  // namespace

std::string gguf_padding(int64_t id) { return str("[PAD", id, "]"); }

int64_t unreachable_entries(const HfTokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  const ByteBpeModel model = merging_model(spec);
  const std::vector<std::string> pieces = model.pieces;
  const ByteBpe bpe(model, spec.path);
  ByteBpeEncoder encoder(bpe);
  std::set<int32_t> added;
  for (const AddedToken& token : spec.added) added.insert(token.id);
  int64_t count = 0;
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < static_cast<int32_t>(pieces.size()); ++id) {
    if (pieces[static_cast<size_t>(id)].empty() || added.count(id) > 0) continue;
    ids.clear();
    encoder.encode_pretoken(pieces[static_cast<size_t>(id)], ids);
    count += ids == std::vector<int32_t>{id} ? 0 : 1;
  }
  return count;
}

GgufBpe gguf_bpe(const HfTokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  if (tokenizer.byte_bpe() == nullptr) refuse(tokenizer, "a BPE of characters; only byte-level BPE");
  GgufBpe bpe{name_of_pre_tokenizer(tokenizer), {}, {}, {}, normalizer_warnings(tokenizer)};
  std::vector<const AddedToken*> added(static_cast<size_t>(tokenizer.vocab_size()));
  bool strips = false;
  for (const AddedToken& token : spec.added) {
    added[static_cast<size_t>(token.id)] = &token;
    strips = strips || token.lstrip || token.rstrip || token.single_word;
  }
  if (strips) bpe.warnings.push_back("llama.cpp ignores lstrip, rstrip and single_word of added tokens");
  std::set<std::string> seen;
  for (int32_t id = 0; id < static_cast<int32_t>(tokenizer.vocab_size()); ++id) {
    const AddedToken* token = added[static_cast<size_t>(id)];
    std::string text = token != nullptr ? token->content : std::string(spec.model.pieces[id]);
    PieceType type = tokenizer.kind(id);
    if (token == nullptr && !spec.model.pieces.has(id)) {
      text = gguf_padding(id);
      type = PieceType::kUnused;
    } else if (text.empty()) {
      refuse(tokenizer, str("token ", id, ", which is empty"));
    }
    if (!seen.insert(text).second) refuse(tokenizer, str("two tokens '", printable(text), "', one of them ", id));
    bpe.tokens.push_back(std::move(text));
    bpe.types.push_back(static_cast<int32_t>(type));
  }
  std::vector<BpeMerge> merges = spec.model.merges;
  std::sort(merges.begin(), merges.end(), [](const BpeMerge& a, const BpeMerge& b) { return a.rank < b.rank; });
  // llama.cpp splits a merge at its space; a space in a part is written as the byte's printable character.
  const auto part = [&](int32_t id) {
    std::string text(spec.model.pieces[id]);
    for (size_t at = 0; (at = text.find(' ', at)) != std::string::npos;) text.replace(at, 1, "\xC4\xA0");
    return text;
  };
  for (const BpeMerge& merge : merges) bpe.merges.push_back(str(part(merge.left), " ", part(merge.right)));
  return bpe;
}

}  // namespace tokamak
