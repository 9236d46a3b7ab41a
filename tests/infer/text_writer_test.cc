#include "infer/text_writer.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "support/temp_dir.h"
#include "tokenizer/model_builder.h"

using namespace tokamak;

namespace {

constexpr auto kContinue = Generator::Verdict::kContinue;
constexpr auto kStop = Generator::Verdict::kStop;

// Pieces 3, 4, ... are a, b, c, d.
struct Fixture {
  explicit Fixture(size_t prompts, TextOptions with) : options(std::move(with)) {
    ModelBuilder model;
    model.add_dummy_prefix = false;
    for (const char* piece : {"a", "b", "c", "d"}) model.add(piece);
    tokenizer = load_tokenizer(model.write(directory.path() + "/tokenizer.model"));
    for (size_t i = 0; i < prompts; ++i) {
      texts.push_back(i == 0 ? "ab" : "cd");
      requests.push_back({i == 0 ? std::vector<int32_t>{3, 4} : std::vector<int32_t>{5, 6}, ""});
    }
    writer.emplace(*tokenizer, texts, requests, options, out);
  }

  TempDir directory;
  TextOptions options;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::string> texts;
  std::vector<GenerationRequest> requests;
  std::ostringstream out;
  std::optional<TextWriter> writer;
};

}  // namespace

TEST_CASE("one prompt's text is written as it comes, after the prompt or without it") {
  for (const bool echo : {true, false}) {
    Fixture f(1, {.echo = echo});
    const std::string before = echo ? "ab" : "";
    CHECK(f.out.str() == before);
    CHECK(f.writer->token(0, 5) == kContinue);
    CHECK(f.out.str() == before + "c");
    f.writer->token(0, 6);
    f.writer->finish(0, Finish::kLength, 2);
    CHECK(f.out.str() == before + "cd\n");
  }
}

TEST_CASE("what may be the beginning of a stop string is not written, unless the text ends there") {
  Fixture f(1, {.stops = {"cd"}, .echo = false});
  f.writer->token(0, 3);
  CHECK(f.writer->token(0, 5) == kContinue);
  CHECK(f.out.str() == "a");
  SECTION("and it is one") {
    CHECK(f.writer->token(0, 6) == kStop);
    f.writer->finish(0, Finish::kStop, 3);
    CHECK(f.out.str() == "a\n");
  }
  SECTION("and it is none") {
    f.writer->finish(0, Finish::kEos, 3);
    CHECK(f.out.str() == "ac\n");
  }
}

TEST_CASE("texts of several prompts are written in their order, with an empty line between") {
  Fixture f(2, {});
  f.writer->token(1, 3);
  f.writer->finish(1, Finish::kEos, 2);
  CHECK(f.out.str() == "");
  f.writer->token(0, 4);
  f.writer->finish(0, Finish::kLength, 1);
  CHECK(f.out.str() == "abb\n\ncda\n");
}

TEST_CASE("as JSON, each prompt is a line with text, tokens and the reason of its end") {
  Fixture f(2, {.stops = {"d"}, .jsonl = true});
  f.writer->token(0, 3);
  CHECK(f.writer->token(0, 6) == kStop);
  f.writer->finish(0, Finish::kStop, 2);
  CHECK(f.out.str() == "{\"prompt\":\"ab\",\"text\":\"a\",\"tokens\":2,\"finish_reason\":\"stop\"}\n");
  f.writer->token(1, 4);
  f.writer->finish(1, Finish::kEos, 2);
  CHECK(f.out.str().substr(f.out.str().find('\n') + 1) ==
        "{\"prompt\":\"cd\",\"text\":\"b\",\"tokens\":2,\"finish_reason\":\"eos\"}\n");
}
