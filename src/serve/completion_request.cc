#include "serve/completion_request.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/json.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

constexpr std::array kUnsupported = {"suffix",  "logit_bias",      "presence_penalty", "frequency_penalty",
                                     "min_p",   "min_tokens",      "stop_token_ids",   "response_format",
                                     "best_of", "use_beam_search", "guided_json",      "include_stop_str_in_output"};

class Fields {
 public:
  explicit Fields(const JsonDocument& body) : root_(body.root()) {}

  // Calls `read` with the field, if it is present. An error there becomes one of this field.
  template <class Read>
  void operator()(const char* name, const Read& read) const {
    const JsonValue value = root_[name];
    if (!value.present()) return;
    try {
      read(value);
    } catch (const Error& error) {
      throw RequestError{400, error.what(), name};
    }
  }
  void flag(const char* name, bool& value) const {
    (*this)(name, [&](const JsonValue& json) { value = json.truth(); });
  }
  void number(const char* name, double& value, double least, double most) const {
    (*this)(name, [&](const JsonValue& json) {
      value = json.number();
      if (!(least <= value && value <= most)) json.refuse(str("expected a number from ", least, " to ", most));
    });
  }
  void whole(const char* name, int64_t& value, int64_t least, int64_t most) const {
    (*this)(name, [&](const JsonValue& json) { value = json.whole(least, most); });
  }

 private:
  JsonValue root_;
};

std::vector<int32_t> ids_of(const JsonValue& list) {
  std::vector<int32_t> ids;
  for (const int64_t id : list.counts()) {
    if (id > INT32_MAX) list.refuse("expected ids of tokens");
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<RequestPrompt> prompts_of(const JsonValue& value) {
  if (value.is_text()) return {{value.text(), {}}};
  if (value.starts_with_whole()) return {{"", ids_of(value)}};
  std::vector<RequestPrompt> prompts;
  for (const JsonValue& item : value.items()) {
    prompts.push_back(item.is_list() ? RequestPrompt{"", ids_of(item)} : RequestPrompt{item.text(), {}});
  }
  return prompts;
}

std::vector<std::string> stops_of(const JsonValue& value) {
  const std::vector<std::string> stops = value.is_text() ? std::vector{value.text()} : value.texts();
  if (std::ssize(stops) > CompletionRequest::kMostStops) {
    value.refuse(str("expected at most ", CompletionRequest::kMostStops, " strings"));
  }
  for (const std::string& stop : stops) {
    if (stop.empty() || std::ssize(stop) > CompletionRequest::kLongestStop) {
      value.refuse(str("expected strings of 1 to ", CompletionRequest::kLongestStop, " bytes"));
    }
  }
  return stops;
}

// Some clients send a neutral value for a field that their user has not set.
void refuse_unsupported(const Fields& fields, int64_t n) {
  static const JsonDocument neutral(R"({"values": [0, false, "", [], {}]})", {"neutral", Kind::kBug});
  for (const char* name : kUnsupported) {
    fields(name, [&](const JsonValue& value) {
      if (name == std::string_view("best_of") && value.is_whole() && value.whole() == n) return;
      for (const JsonValue& one : neutral["values"].items()) {
        if (value == one) return;
      }
      value.refuse("this server does not support the field");
    });
  }
}

JsonDocument parsed(std::string_view body) {
  if (extent_of_json(body).depth > CompletionRequest::kDeepestBody) {
    throw RequestError{400, str("the body is nested more than ", CompletionRequest::kDeepestBody, " deep")};
  }
  try {
    return JsonDocument(body, {"the body", Kind::kData}, JsonRules::kLenient);
  } catch (const Error& error) {
    throw RequestError{400, error.what()};
  }
}

}  // namespace

CompletionRequest parse_completion_request(std::string_view body) {
  const JsonDocument document = parsed(body);
  const Fields fields(document);
  CompletionRequest r;
  fields("model", [&](const JsonValue& value) { r.model = value.text(); });
  fields("prompt", [&](const JsonValue& value) { r.prompts = prompts_of(value); });
  if (r.prompts.empty()) r.prompts.emplace_back();
  fields.whole("max_tokens", r.max_tokens, 0, INT32_MAX);
  fields.whole("n", r.n, 1, CompletionRequest::kMostTexts);
  fields.number("temperature", r.sampling.temperature, 0, 2);
  fields.number("top_p", r.sampling.top_p, 1e-9, 1);
  fields.whole("top_k", r.sampling.top_k, -1, INT32_MAX);
  fields.number("repetition_penalty", r.sampling.repetition_penalty, 1e-3, 1e3);
  fields("stop", [&](const JsonValue& value) { r.stops = stops_of(value); });
  fields("logprobs", [&](const JsonValue& value) { r.logprobs = value.whole(0, CompletionRequest::kMostLogprobs); });
  fields("seed", [&](const JsonValue& value) { r.seed = static_cast<uint64_t>(value.whole(INT64_MIN)); });
  fields.flag("echo", r.echo);
  fields.flag("stream", r.stream);
  fields.flag("ignore_eos", r.ignore_eos);
  fields.flag("add_special_tokens", r.add_special_tokens);
  fields("stream_options", [&](const JsonValue& value) {
    if (!r.stream) value.refuse("expected only with \"stream\": true");
    r.include_usage = value["include_usage"].truth_or(false);
  });
  refuse_unsupported(fields, r.n);
  r.sampling.top_k = std::max(r.sampling.top_k, int64_t{0});  // vLLM's -1: all
  if (r.max_tokens == 0 && !r.echo)
    throw RequestError{400, "max_tokens 0 needs echo: there would be no text", "max_tokens"};
  if (std::ssize(r.prompts) > CompletionRequest::kMostTexts / r.n) {
    throw RequestError{400,
                       str(r.prompts.size(), " prompts, ", r.n, " texts of each: at most ",
                           CompletionRequest::kMostTexts, " texts are made at once"),
                       "prompt"};
  }
  return r;
}

}  // namespace tokamak
