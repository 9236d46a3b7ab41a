#include "interop/gguf_tokenizer.h"

#include "base/error.h"
#include "base/log.h"
#include "interop/gguf_bpe.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak {

namespace {

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;  // none for byte-level BPE
  std::vector<int32_t> types;
};

// Adds it with the model's rows beyond the tokenizer's pieces, under llama.cpp's name for padding.
void add_vocabulary(Vocabulary vocabulary, int64_t rows, GgufKeys& keys) {
  constexpr float kScoreOfPadding = -10000;
  const bool scored = !vocabulary.scores.empty();
  for (auto id = std::ssize(vocabulary.tokens); id < rows; ++id) {
    vocabulary.tokens.push_back(gguf_padding(id));
    if (scored) vocabulary.scores.push_back(kScoreOfPadding);
    vocabulary.types.push_back(static_cast<int32_t>(PieceType::kUnused));
  }
  keys.emplace_back("tokenizer.ggml.tokens", GgufArray(std::move(vocabulary.tokens)));
  if (scored) keys.emplace_back("tokenizer.ggml.scores", GgufArray(std::move(vocabulary.scores)));
  keys.emplace_back("tokenizer.ggml.token_type", GgufArray(std::move(vocabulary.types)));
}

void add_id(const char* name, int64_t id, GgufKeys& keys) {
  if (id >= 0) keys.emplace_back(str("tokenizer.ggml.", name, "_token_id"), static_cast<uint32_t>(id));
}

void add_sentencepiece(const ModelProto& model, const ExportSource& source, bool add_bos, GgufKeys& keys) {
  keys.emplace_back("tokenizer.ggml.model", std::string("llama"));
  keys.emplace_back("tokenizer.ggml.pre", std::string("default"));
  Vocabulary vocabulary;
  for (const Piece& piece : model.pieces) {
    vocabulary.tokens.push_back(piece.text);
    vocabulary.scores.push_back(piece.score);
    vocabulary.types.push_back(static_cast<int32_t>(piece.type));
  }
  add_vocabulary(std::move(vocabulary), source.config.model.vocab_size, keys);
  add_id("bos", source.ids.bos.value_or(-1), keys);
  add_id("eos", source.ids.eos.value_or(-1), keys);
  add_id("unknown", model.unk_id, keys);
  keys.emplace_back("tokenizer.ggml.add_bos_token", add_bos && source.ids.bos.has_value());
  keys.emplace_back("tokenizer.ggml.add_eos_token", false);
  keys.emplace_back("tokenizer.ggml.add_space_prefix", model.normalizer.add_dummy_prefix);
}

void add_byte_level(const HfTokenizer& tokenizer, int64_t rows, bool add_bos, GgufKeys& keys) {
  const TokenizerSpec& spec = tokenizer.spec();
  const GgufBpe bpe = gguf_bpe(tokenizer);
  for (const std::string& warning : bpe.warnings) log::warning(spec.path, ": ", warning);
  keys.emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  keys.emplace_back("tokenizer.ggml.pre", bpe.pre);
  add_vocabulary({bpe.tokens, {}, bpe.types}, rows, keys);
  keys.emplace_back("tokenizer.ggml.merges", GgufArray(bpe.merges));
  // Without these keys, llama.cpp takes the token 11 for both.
  if (spec.bos_id < 0 && spec.eos_id < 0) {
    fail(Kind::kConfig, str(spec.path, ": GGUF needs a BOS or an EOS token, and no file beside it names one"),
         "name eos_token in tokenizer_config.json");
  }
  add_id("bos", spec.bos_id >= 0 ? spec.bos_id : spec.eos_id, keys);
  add_id("eos", spec.eos_id >= 0 ? spec.eos_id : spec.bos_id, keys);
  add_id("padding", spec.pad_id, keys);
  add_id("unknown", spec.unk_id, keys);
  keys.emplace_back("tokenizer.ggml.add_bos_token", spec.bos_id >= 0 && (add_bos || spec.begins_with_bos()));
  keys.emplace_back("tokenizer.ggml.add_eos_token", spec.ends_with_eos());
  if (!spec.chat_template.empty()) keys.emplace_back("tokenizer.chat_template", spec.chat_template);
}

}  // namespace

void add_gguf_tokenizer(const ExportSource& source, bool add_bos, GgufKeys& keys) {
  std::unique_ptr<Tokenizer> of_directory;
  const Tokenizer* tokenizer = source.tokenizer.tokenizer.get();
  if (!source.tokenizer.directory.empty()) {
    of_directory = load_tokenizer(source.tokenizer.directory);
    tokenizer = of_directory.get();
  }
  if (tokenizer == nullptr) {
    keys.emplace_back("tokenizer.ggml.model", std::string("none"));
    return;
  }
  const int64_t rows = source.config.model.vocab_size;
  if (tokenizer->vocab_size() > rows) {
    fail(Kind::kData,
         str(tokenizer->path(), " has ", tokenizer->vocab_size(), " pieces, but the model's vocabulary has ", rows));
  }
  if (const auto* model = dynamic_cast<const SentencePieceTokenizer*>(tokenizer)) {
    add_sentencepiece(model->proto(), source, add_bos, keys);
  } else if (const auto* json = dynamic_cast<const HfTokenizer*>(tokenizer)) {
    add_byte_level(*json, rows, add_bos, keys);
  } else {
    TOKAMAK_UNREACHABLE(tokenizer->path());
  }
}

}  // namespace tokamak
