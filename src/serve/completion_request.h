// The body of POST /v1/completions as typed values. The fields are OpenAI's; top_k, repetition_penalty, ignore_eos and
// add_special_tokens are vLLM's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/sampling.h"

namespace tokamak {

// Why a request is refused, as the client sees it. Thrown.
struct RequestError {
  int status = 400;
  std::string message;
  std::string param = "";   // the field of the body
  std::string code = "";    // for programs: "queue_full"
  int64_t retry_after = 0;  // seconds; 0: no advice
};

struct RequestPrompt {
  std::string text;
  std::vector<int32_t> ids;  // instead of text, if not empty
};

struct CompletionRequest {
  static constexpr int64_t kMostTexts = 128, kMostStops = 16, kLongestStop = 256, kMostLogprobs = 20;
  static constexpr int kDeepestBody = 32;

  std::string model;  // "": the first
  std::vector<RequestPrompt> prompts;
  int64_t max_tokens = 16;
  int64_t n = 1;  // texts of each prompt
  SamplingOptions sampling{.temperature = 1, .top_p = 1};
  std::vector<std::string> stops;
  std::optional<int64_t> logprobs;  // how many of the likeliest tokens; absent: no log probabilities
  std::optional<uint64_t> seed;     // absent: the server draws one
  bool echo = false, stream = false, include_usage = false, ignore_eos = false;
  bool add_special_tokens = true;  // false: no BOS, whatever the server's --bos says
};

// Throws RequestError, which names the field. Unknown fields are ignored, since clients send their own. Known ones that
// would change the text and do not exist here are refused.
CompletionRequest parse_completion_request(std::string_view body);

}  // namespace tokamak
