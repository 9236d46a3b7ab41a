// Bodies of requests: which are accepted, as what, and which field an error names.
#include "serve/completion_request.h"

#include <catch2/catch.hpp>

#include "base/strings.h"

using namespace tokamak;

namespace {

std::string refused_field(const std::string& body) {
  try {
    parse_completion_request(body);
  } catch (const RequestError& error) {
    CHECK(error.status == 400);
    CHECK(!error.message.empty());
    return error.param.empty() ? "the body" : error.param;
  }
  return "";
}

}  // namespace

TEST_CASE("what a request leaves out, or sets to null, has OpenAI's default") {
  for (const char* body : {"{}", R"({"model": null, "prompt": null, "max_tokens": null, "stop": null, "seed": null,
                                     "logprobs": null, "echo": null, "n": null, "suffix": null, "stream_options": null})"}) {
    const CompletionRequest r = parse_completion_request(body);
    CHECK((r.model.empty() && r.prompts.size() == 1 && r.prompts[0].text.empty() && r.prompts[0].ids.empty()));
    CHECK((r.max_tokens == 16 && r.n == 1 && r.stops.empty() && !r.logprobs && !r.seed));
    CHECK((r.sampling.temperature == 1 && r.sampling.top_p == 1 && r.sampling.top_k == 0));
    CHECK((r.sampling.repetition_penalty == 1 && !r.echo && !r.stream && !r.ignore_eos && r.add_special_tokens));
  }
}

TEST_CASE("a prompt is a text, ids, or several of them") {
  CHECK(parse_completion_request(R"({"prompt": "a\u0000é"})").prompts[0].text == std::string("a\0\xC3\xA9", 4));
  CHECK(parse_completion_request(R"({"prompt": [1, 2]})").prompts[0].ids == std::vector<int32_t>{1, 2});
  const auto mixed = parse_completion_request(R"({"prompt": [[1], "b", [3, 4]]})").prompts;
  REQUIRE(mixed.size() == 3);
  CHECK((mixed[0].ids.size() == 1 && mixed[1].text == "b" && mixed[2].ids.back() == 4));
  CHECK(parse_completion_request(R"({"prompt": []})").prompts.size() == 1);
}

TEST_CASE("a harness's and a client's request are read as they are") {
  const CompletionRequest scored = parse_completion_request(
      R"({"model": "m", "prompt": [[5, 6]], "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": true})");
  CHECK((scored.logprobs == 1 && scored.echo && scored.seed == 1234U && scored.sampling.temperature == 0));
  const CompletionRequest streamed = parse_completion_request(
      R"({"stream": true, "stream_options": {"include_usage": true}, "stop": ["a", "b"], "top_k": -1, "seed": -1,
          "best_of": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "user": "u", "metadata": [{}]})");
  CHECK((streamed.stream && streamed.include_usage && streamed.stops.size() == 2 && streamed.sampling.top_k == 0));
  CHECK(streamed.seed == ~uint64_t{0});
}

TEST_CASE("an error names its field") {
  for (const auto& [body, field] : std::vector<std::pair<std::string, std::string>>{
           {"", "the body"},
           {"[]", "the body"},
           {"{\"a\": \xFF}", "the body"},
           {std::string(33, '[') + std::string(33, ']'), "the body"},
           {R"({"model": 1})", "model"},
           {R"({"prompt": {}})", "prompt"},
           {R"({"prompt": [1, "a"]})", "prompt"},
           {R"({"prompt": [-1]})", "prompt"},
           {R"({"prompt": [4294967296]})", "prompt"},
           {R"({"max_tokens": -1})", "max_tokens"},
           {R"({"max_tokens": 0})", "max_tokens"},
           {R"({"max_tokens": true})", "max_tokens"},
           {R"({"n": 0})", "n"},
           {R"({"n": 129})", "n"},
           {R"({"n": 65, "prompt": ["a", "b"]})", "prompt"},
           {R"({"temperature": 2.1})", "temperature"},
           {R"({"temperature": "1"})", "temperature"},
           {R"({"top_p": 0})", "top_p"},
           {R"({"top_k": -2})", "top_k"},
           {R"({"repetition_penalty": 0})", "repetition_penalty"},
           {R"({"stop": [""]})", "stop"},
           {R"({"stop": ")" + std::string(257, 'a') + "\"}", "stop"},
           {R"({"stop": [)" + std::string(16 * 4, ' ') +
                R"("a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"]})",
            "stop"},
           {R"({"logprobs": 21})", "logprobs"},
           {R"({"seed": 1.5})", "seed"},
           {R"({"echo": 1})", "echo"},
           {R"({"stream_options": {"include_usage": true}})", "stream_options"},
           {R"({"stream": true, "stream_options": 3})", "stream_options"},
           {R"({"suffix": "x"})", "suffix"},
           {R"({"presence_penalty": 0.5})", "presence_penalty"},
           {R"({"logit_bias": {"5": 1}})", "logit_bias"},
           {R"({"best_of": 2})", "best_of"}}) {
    INFO(body);
    CHECK(refused_field(body) == field);
  }
}
