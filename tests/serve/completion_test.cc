// A completion's pieces as the engine makes them, and their JSON.
#include "serve/completion.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "serve/completion_reply.h"
#include "support/temp_dir.h"
#include "tokenizer/model_builder.h"

using namespace tokamak;
using Json = nlohmann::json;

namespace {

// Pieces 3, 4, ... are a, b, c, d, " e", then bytes.
struct CompletionFixture {
  CompletionFixture() {
    ModelBuilder model;
    model.add_dummy_prefix = false;
    for (const char* piece : {"a", "b", "c", "d",
                              "\xE2\x96\x81"
                              "e"})
      model.add(piece);
    model.add_bytes();
    tokenizer = load_tokenizer(model.write(directory.path() + "/tokenizer.model"));
  }
  PromptEncoding encoding() const { return {tokenizer.get(), true, 64}; }
  int32_t byte(int value) const { return 8 + value; }

  TempDir directory;
  std::unique_ptr<Tokenizer> tokenizer;
};

Logprobs logprobs(int32_t id, double value) { return {{id, value}, {{4, -0.5}, {5, -1.5}}}; }

std::vector<TextPiece> taken(Completion& completion) {
  std::vector<TextPiece> pieces;
  while (auto piece = completion.next(0)) pieces.push_back(std::move(*piece));
  return pieces;
}

int refused(const CompletionFixture& f, const std::string& body) {
  try {
    const Completion completion(parse_completion_request(body), f.encoding(), 1);
  } catch (const RequestError& error) {
    CHECK(!error.param.empty());
    return error.status;
  }
  return 200;
}

}  // namespace

TEST_CASE("BOS is before texts and not before ids; no prompt is a text from the start") {
  CompletionFixture f;
  const auto ids = [&](const char* body) {
    return Completion(parse_completion_request(body), f.encoding(), 1).request_of(0).prompt;
  };
  CHECK(ids(R"({"prompt": "ab"})") == std::vector<int32_t>{1, 3, 4});
  CHECK(ids(R"({"prompt": "ab", "add_special_tokens": false})") == std::vector<int32_t>{3, 4});
  CHECK(ids(R"({"prompt": [3, 4]})") == std::vector<int32_t>{3, 4});
  CHECK(ids("{}") == std::vector<int32_t>{1});
  CHECK(refused(f, R"({"prompt": [264]})") == 400);
  CHECK(refused(f, R"({"prompt": [263]})") == 200);
  CHECK(refused(f, R"({"prompt": [3, 4], "max_tokens": 62})") == 200);
  CHECK(refused(f, R"({"prompt": [3, 4], "max_tokens": 63})") == 400);
  CHECK(refused(f, R"({"prompt": [3], "max_tokens": 2147483647})") == 400);
  PromptEncoding large = f.encoding();
  large.context = 10000;
  const auto reply_of = [&](const char* body) {
    return Completion(parse_completion_request(body), large, 1).choices();
  };
  CHECK(reply_of(R"({"n": 128, "max_tokens": 2000, "logprobs": 2})") == 128);
  CHECK_THROWS_AS(reply_of(R"({"n": 128, "max_tokens": 2000, "logprobs": 3})"), RequestError);
}

TEST_CASE("a piece has whole characters and nothing of a stop string; a token comes with its first character") {
  CompletionFixture f;
  Completion completion(parse_completion_request(R"({"prompt": "a", "stop": ["cd"], "logprobs": 1})"), f.encoding(), 1);
  int over = 0;
  completion.when_over([&] { ++over; });
  TextReceiver& text = completion.receiver(0);
  const auto give = [&](int32_t id) {
    const Logprobs of = logprobs(id, -0.25);
    return text.token(id, &of);
  };
  const auto only = [&] {
    const std::vector<TextPiece> pieces = taken(completion);
    REQUIRE(pieces.size() == 1);
    return pieces[0];
  };
  give(f.byte(0xC3));
  CHECK(taken(completion).empty());
  give(f.byte(0xA9));
  TextPiece piece = only();
  CHECK((piece.text == "\xC3\xA9" && piece.tokens.size() == 2 && piece.tokens[1].offset == 0));
  give(5);
  CHECK(taken(completion).empty());  // "c" may be the beginning of the stop string
  give(3);
  piece = only();
  CHECK((piece.text == "ca" && piece.tokens.size() == 2 && piece.tokens[0].offset == 1 && piece.tokens[1].offset == 2));
  give(5);
  CHECK(give(6) == TextReceiver::Verdict::kStop);
  CHECK(over == 0);
  text.finish(Finish::kLength, 6);
  CHECK(over == 1);
  piece = only();
  CHECK((piece.text.empty() && piece.tokens.empty() && piece.finish == Finish::kStop && piece.new_tokens == 6));
  CHECK(completion.all_taken());
}

TEST_CASE(
    "with echo the prompt's tokens are first, the first without a value, and one new token is one more, even EOS") {
  CompletionFixture f;
  Completion completion(
      parse_completion_request(R"({"prompt": [3, 7, 4], "echo": true, "logprobs": 1, "max_tokens": 1})"), f.encoding(),
      1);
  completion.when_over([] {});
  CHECK(completion.request_of(0).wants_prompt_logprobs);
  completion.receiver(0).prompt_token(logprobs(7, -2));
  completion.receiver(0).prompt_token(logprobs(4, -0.5));
  const Logprobs end = logprobs(2, -3);
  completion.receiver(0).token(2, &end);
  completion.receiver(0).finish(Finish::kEos, 1);
  CompletionReply reply(*f.tokenizer, {.id = "cmpl-1", .model = "m", .created = 7, .seed = 1, .has_logprobs = true}, 3);
  for (TextPiece& piece : taken(completion)) reply.add(std::move(piece));
  const Json json = Json::parse(reply.whole());
  const Json& choice = json["choices"][0];
  CHECK(choice["text"] == "a eb");
  CHECK(choice["finish_reason"] == "stop");
  const Json& values = choice["logprobs"];
  CHECK(values["tokens"] == Json({"a", " e", "b", "</s>"}));
  CHECK(values["token_ids"] == Json({3, 7, 4, 2}));
  CHECK(values["token_logprobs"] == Json({nullptr, -2, -0.5, -3}));
  CHECK(values["text_offset"] == Json({0, 1, 3, 4}));
  CHECK(values["top_logprobs"] == Json({nullptr,
                                        {{"b", -0.5}, {"c", -1.5}, {" e", -2}},
                                        {{"b", -0.5}, {"c", -1.5}},
                                        {{"b", -0.5}, {"c", -1.5}, {"</s>", -3}}}));
  CHECK(json["usage"] == Json({{"prompt_tokens", 3}, {"completion_tokens", 1}, {"total_tokens", 4}}));
}

TEST_CASE("a slow client's text stops when too much of it is waiting") {
  CompletionFixture f;
  Completion completion(parse_completion_request(R"({"prompt": "a", "logprobs": 1})"), f.encoding(), 1);
  Logprobs many = logprobs(3, -1);
  many.likeliest.resize(20, {4, -1});
  int64_t tokens = 0;
  while (completion.receiver(0).token(3, &many) == TextReceiver::Verdict::kContinue) ++tokens;
  CHECK(tokens == Completion::kMostWaiting);
  CHECK_THROWS_AS(completion.next(0), RequestError);
}

TEST_CASE("an engine's failure reaches the client instead of more pieces") {
  CompletionFixture f;
  Completion completion(parse_completion_request("{}"), f.encoding(), 1);
  completion.receiver(0).token(3, nullptr);
  completion.fail({500, "it failed"});
  CHECK_THROWS_AS(completion.next(0), RequestError);
}

TEST_CASE("a token's name is its text, its bytes if that is no whole text, or a special token's piece") {
  CompletionFixture f;
  CHECK(token_name(*f.tokenizer, 3) == "a");
  CHECK(token_name(*f.tokenizer, 7) == " e");
  CHECK(token_name(*f.tokenizer, 2) == "</s>");
  CHECK(token_name(*f.tokenizer, f.byte('x')) == "x");
  CHECK(token_name(*f.tokenizer, f.byte(0xC3)) == "bytes:\\xC3");
}

TEST_CASE("events and errors are OpenAI's, and hostile texts are quoted") {
  CompletionFixture f;
  CompletionReply reply(*f.tokenizer, {.id = "cmpl-1", .model = "m", .created = 7, .seed = 1, .includes_usage = true},
                        3);
  const std::string event = reply.event(
      {.choice = 1, .text = "\n\ndata: [DONE]\"\xFF", .tokens = {}, .finish = Finish::kLength, .new_tokens = 4});
  REQUIRE(event.starts_with("data: {"));
  CHECK(event.find('\n') == event.size() - 2);
  const Json json = Json::parse(event.substr(6));
  CHECK(json["object"] == "text_completion");
  CHECK(json["choices"][0]["text"] == "\n\ndata: [DONE]\"\xEF\xBF\xBD");
  CHECK(
      (json["choices"][0]["index"] == 1 && json["choices"][0]["finish_reason"] == "length" && json["usage"].is_null()));
  const std::string last = reply.last_events();
  CHECK(Json::parse(last.substr(6, last.find("\n\n") - 6))["usage"]["completion_tokens"] == 4);
  CHECK(last.ends_with("\n\ndata: [DONE]\n\n"));
  CHECK(Json::parse(error_json({429, "full", "", "queue_full", 3})) ==
        Json::parse(
            R"({"error": {"message": "full", "type": "rate_limit_error", "param": null, "code": "queue_full"}})"));
}
