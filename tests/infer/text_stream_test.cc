#include "infer/text_stream.h"

#include <catch2/catch.hpp>

#include "support/temp_dir.h"
#include "tokenizer/model_builder.h"

using namespace tokamak;

namespace {

const std::string kSpace = "\xE2\x96\x81";  // U+2581, a piece's leading space

// Words, letters and all bytes.
std::unique_ptr<Tokenizer> make_tokenizer(const TempDir& directory) {
  ModelBuilder model;
  for (const char* piece : {"one", "two"}) model.add(kSpace + piece);
  for (const char* piece : {"a", "b", "c"}) model.add(piece);
  model.add(kSpace).add_bytes();
  return load_tokenizer(model.write(directory.path() + "/tokenizer.model"));
}

struct Fixture {
  TempDir directory;
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(directory);
  int32_t id(const std::string& piece) const {
    for (int32_t i = 0; i < tokenizer->vocab_size(); ++i) {
      if (tokenizer->piece(i) == piece) return i;
    }
    FAIL("no piece " << piece);
    return -1;
  }
};

// All that a filter shows of pieces that come one by one, with bars between.
std::string shown(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopFilter filter(stops);
  std::string out;
  for (const std::string& piece : pieces) out += filter.feed(piece) + "|";
  return out + filter.rest() + (filter.stopped() ? "." : "");
}

}  // namespace

TEST_CASE("a text without stop strings is shown as it comes") { CHECK(shown({}, {"a", "bc", ""}) == "a|bc||"); }

TEST_CASE("a stop string ends the text before it, also across pieces, and what may be its beginning is held back") {
  CHECK(shown({"END"}, {"an END", "x"}) == "an ||.");
  CHECK(shown({"END"}, {"an E", "N", "D of", "x"}) == "an ||||.");
  CHECK(shown({"END"}, {"an E", "NT", "x"}) == "an |ENT|x|");
  CHECK(shown({"END"}, {"E", "E", "ND"}) == "|E||.");
  CHECK(shown({"END"}, {"an E"}) == "an |E");
  CHECK(shown({"aab"}, {"a", "a", "a", "b"}) == "||a||.");
}

TEST_CASE("of several stop strings the first that is whole ends the text, of two that end together the longer") {
  CHECK(shown({"c", "abcd"}, {"x", "a", "b", "c", "d"}) == "x|||ab||.");
  CHECK(shown({"c", "abcd"}, {"xabcd"}) == "xab|.");  // the same however the text is cut
  CHECK(shown({"c", "bc"}, {"abc"}) == "a|.");
  CHECK(shown({"bc", "c"}, {"a", "b", "c"}) == "a|||.");
}

TEST_CASE("a token's text is what it adds: a space inside of a text, none where the text begins") {
  const Fixture f;
  Detokenizer begins(*f.tokenizer, {});
  CHECK(begins.next(f.id(kSpace + "one")) == "one");
  CHECK(begins.next(f.id(kSpace + "two")) == " two");
  Detokenizer continues(*f.tokenizer, {f.id(kSpace + "one")});
  CHECK(continues.next(f.id(kSpace + "two")) == " two");
  CHECK(continues.next(f.id("a")) == "a");
  CHECK(continues.next(f.tokenizer->eos_id()) == "");
  CHECK(continues.next(f.id(kSpace + "one")) == " one");
  CHECK(continues.rest() == "");
}

TEST_CASE("a character of several bytes comes with its last byte; bytes that make none come at the end") {
  const Fixture f;
  Detokenizer text(*f.tokenizer, {f.id("a")});
  CHECK(text.next(f.id("<0xC3>")) == "");
  CHECK(text.next(f.id("<0xA9>")) == "\xC3\xA9");
  CHECK(text.next(f.id("b")) == "b");
  CHECK(text.next(f.id("<0xF0>")) == "");
  CHECK(text.next(f.id("<0x9F>")) == "");
  CHECK(text.rest() == "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("the texts of tokens, one after another, are the text of all of them") {
  const Fixture f;
  std::vector<int32_t> ids;
  uint32_t state = 1;
  for (int i = 0; i < 400; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(3 + static_cast<int32_t>(state >> 16) % static_cast<int32_t>(f.tokenizer->vocab_size() - 3));
  }
  ids[4] = f.id("a");  // or bytes at the end of the context might belong to the next character
  const std::vector<int32_t> context(ids.begin(), ids.begin() + 5);
  Detokenizer text(*f.tokenizer, context);
  std::string all = f.tokenizer->decode(context);
  for (size_t i = 5; i < ids.size(); ++i) all += text.next(ids[i]);
  CHECK(all + text.rest() == f.tokenizer->decode(ids));
}
