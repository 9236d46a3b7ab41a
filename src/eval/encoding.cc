#include "eval/encoding.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "base/strings.h"
#include "eval/python_text.h"

namespace tokamak {

EvalEncoder::EvalEncoder(const Tokenizer& tokenizer, const EncodingOptions& options)
    : tokenizer_(tokenizer), options_(options), encoder_(tokenizer.make_encoder()) {
  if (options.add_bos && tokenizer.bos_id() < 0) {
    fail(Kind::kConfig, str(tokenizer.path(), " has no BOS token to put before each text"));
  }
}

std::vector<int32_t> EvalEncoder::encode(std::string_view text) {
  std::vector<int32_t> ids;
  // The harness treats a literal BOS token in the text as BOS.
  if (options_.add_bos && !starts_with(text, tokenizer_.piece(tokenizer_.bos_id()))) ids.push_back(tokenizer_.bos_id());
  encoder_->encode(text, ids);
  return ids;
}

ScoredSequence EvalEncoder::pair(std::string_view context, std::string_view continuation, std::string_view where) {
  const std::string whole = str(context, continuation);
  std::vector<int32_t> tokens = encode(whole);
  const auto before = static_cast<int64_t>(encode(python_rstrip(context)).size());
  const int64_t scored = std::ssize(tokens) - before;
  if (scored < 1 || before < 1) {
    fail(Kind::kData, str(where, ": no tokens to score, or none before them, in \"", printable(whole), "\""));
  }
  if (scored > options_.context) {
    fail(Kind::kData, str(where, ": a choice of ", scored, " tokens, but the model sees ", options_.context,
                          " at most: \"", printable(continuation), "\""));
  }
  const int64_t surplus = std::ssize(tokens) - (options_.context + 1);
  if (surplus > 0) tokens.erase(tokens.begin(), tokens.begin() + surplus);
  return {std::move(tokens), scored};
}

std::vector<int32_t> EvalEncoder::prompt(std::string_view text, int64_t new_tokens, std::string_view where) {
  const int64_t room = options_.context - new_tokens;
  if (room < 1) {
    fail(Kind::kConfig,
         str(where, ": ", new_tokens, " new tokens leave no room for a prompt: the model sees ", options_.context,
             " tokens at most"),
         "a larger --context, if the model can take it");
  }
  std::vector<int32_t> tokens = encode(text);
  if (tokens.empty()) fail(Kind::kData, str(where, ": no tokens in \"", printable(text), "\""));
  if (std::ssize(tokens) > room) tokens.erase(tokens.begin(), tokens.end() - room);
  return tokens;
}

std::vector<ScoredSequence> EvalEncoder::windows(std::string_view text) {
  const std::vector<int32_t> ids = encode(text);
  const auto count = std::ssize(ids);
  std::vector<ScoredSequence> out;
  for (int64_t predicted = 0; predicted < count;) {
    const int64_t scored = std::min(count - predicted, options_.context);
    const int64_t end = predicted + scored;
    ScoredSequence window{.tokens = {}, .scored = scored};
    if (predicted == 0) {
      window.tokens.push_back(tokenizer_.bos_id() >= 0 ? tokenizer_.bos_id() : tokenizer_.eos_id());
      window.tokens.insert(window.tokens.end(), ids.begin(), ids.begin() + end);
    } else {
      window.tokens.assign(ids.begin() + (end - options_.context - 1), ids.begin() + end);
    }
    out.push_back(std::move(window));
    predicted = end;
  }
  return out;
}

}  // namespace tokamak
