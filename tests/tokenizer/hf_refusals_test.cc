// Each refusal of the readers of tokenizer.json, .tiktoken and tekken.json, with a file that only this refusal stops.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "hf_files.h"
#include "tokenizer/hf/tekken_file.h"
#include "tokenizer/hf/tiktoken_file.h"
#include "tokenizer/hf/tokenizer_json.h"

using namespace tokamak;

namespace {

struct Refusal {
  std::string from, to;  // a change of the file
  std::string message;   // a part of what is said
};

template <class Parse>
std::string message_of(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class Parse>
void expect_refusals(const std::string& file, const std::vector<Refusal>& refusals, const Parse& parse) {
  REQUIRE(message_of([&] { parse(file); }).empty());
  for (const Refusal& refusal : refusals) {
    std::string text = file;
    const size_t at = text.find(refusal.from);
    INFO(refusal.from << " -> " << refusal.to);
    REQUIRE(at != std::string::npos);
    text.replace(at, refusal.from.size(), refusal.to);
    CHECK_THAT(message_of([&] { parse(text); }), Catch::Contains(refusal.message));
  }
}

const std::string kAdded = R"([{"id":257,"content":"<x>","single_word":false,"lstrip":false,"rstrip":false,)"
                           R"("normalized":false,"special":true}])";

}  // namespace

TEST_CASE("each wrong field of a tokenizer.json is refused by name") {
  const std::string model = R"("model":{"type":"BPE",)";
  const std::string level = R"("pre_tokenizer":{"type":"ByteLevel",)";
  const std::string single = R"("post_processor":{"type":"TemplateProcessing","special_tokens":{},"single":)";
  const auto step = [](const std::string& key, const std::string& value) {
    return Refusal{R"({"version")", str(R"({")", key, R"(":)", value, R"(,"version")"), ""};
  };
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& message) {
    Refusal refusal = step(key, value);
    refusal.message = message;
    return refusal;
  };
  const auto instead = [&](const std::string& key, const std::string& value, const std::string& message) {
    return Refusal{
        str('"', key, R"(":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})"),
        str('"', key, R"(":)", value), message};
  };
  const std::vector<Refusal> refusals = {
      {R"("a b")", R"("a b c")", "is not two parts with one space between them"},
      {R"("ab":256)", R"("ab":99999)", "pieces have ids up to 99999"},
      {"]}}", "]}} x", "text behind the end of the object"},
      {R"("BPE")", R"("Unigram")", "only BPE models are supported"},
      {model, model + R"("dropout":0.1,)", "BPE dropout is not supported"},
      {R"("vocab":{)", R"("vocab":[],"x":{)", "'model.vocab' is []; this field is not known"},
      {model, model + R"("cache":1,)", "cache' is 1; this field is not known"},
      {R"("merges")", R"("fuse_unk":false,"rules")", "rules' is"},
      {R"("version")", R"("extra":1,"version")", "extra' is 1; this field is not known"},
      {R"("content":"<x>")", R"("content":"")", "an empty token matches nothing"},
      {R"("id":257)", R"("id":300)", "Hugging Face's loader gives '<x>' the id 257"},
      {R"("special":true)", R"("special":true,"color":1)", "color' is 1; this field is not known"},
      {R"("1.0")", R"("2.0")", "only version 1.0 is known"},
      {R"(<x>)", "\xFF", "is not UTF-8"},
      {R"("ab":256)", R"("ab":256,)", "a comma without a value behind it"},
      {level, R"("pre_tokenizer":{"x":1,"type":"ByteLevel",)", "x' is 1; this field is not known"},
      refused("normalizer", R"({"type":"NFC","x":1})", "x' is 1; this field is not known"),
      refused("normalizer", R"({"type":"Prepend","prepend":"a","x":1})", "x' is 1; this field is not known"),
      refused("normalizer", R"({"type":"Replace","pattern":{"String":"a"},"content":"b","x":1})",
              "x' is 1; this field is not known"),
      refused("normalizer", R"({"type":"Replace","pattern":{"String":"a","Regex":"b"},"content":"b"})", "expected one"),
      refused("normalizer", R"({"type":"Replace","pattern":{"String":""},"content":"b"})", "an empty pattern"),
      refused("normalizer", R"({"type":"Strip","strip_left":true,"strip_right":true,"x":1})",
              "x' is 1; this field is not known"),
      refused("normalizer", R"({"type":"Sequence","normalizers":[],"x":1})", "x' is 1; this field is not known"),
      instead("pre_tokenizer", R"({"type":"Digits","individual_digits":true,"x":1})",
              "x' is 1; this field is not known"),
      instead("pre_tokenizer",
              R"({"type":"Split","pattern":{"String":"a"},"behavior":"Isolated","invert":false,"x":1})",
              "x' is 1; this field is not known"),
      instead("pre_tokenizer", R"({"type":"Metaspace","replacement":"ab"})", "expected one character"),
      instead("pre_tokenizer", R"({"type":"Metaspace","replacement":"_","x":1})", "x' is 1; this field is not known"),
      instead("pre_tokenizer",
              R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","add_prefix_space":false})",
              "prepend_scheme is first"),
      instead("pre_tokenizer", R"({"type":"Whitespace","x":1})", "x' is 1; this field is not known"),
      instead("pre_tokenizer", R"({"type":"Punctuation","behavior":"Isolated","x":1})",
              "x' is 1; this field is not known"),
      instead("decoder", R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true,"x":1})",
              "x' is 1; this field is not known"),
      instead("decoder", R"({"type":"Fuse","x":1})", "x' is 1; this field is not known"),
      instead("decoder", R"({"type":"Replace","pattern":{"String":"a"},"content":"b","x":1})",
              "x' is 1; this field is not known"),
      instead("decoder", R"({"type":"Replace","pattern":{"Regex":"a"},"content":"b"})",
              "a decoder's regular expression"),
      instead("decoder", R"({"type":"Strip","content":"a","start":0,"stop":0,"x":1})",
              "x' is 1; this field is not known"),
      instead("decoder", R"({"type":"BPEDecoder","suffix":"a","x":1})", "x' is 1; this field is not known"),
      {R"("version")", single + R"([],"pair":[]},"version")", "expected one sequence"},
      {R"("version")", single + R"([{"Sequence":{"id":"B","type_id":0}}],"pair":[]},"version")", "sequence A only"},
      {R"("version")", single + R"([{"Sequence":{"id":"A","type_id":0}}],"pair":[],"x":1},"version")",
       "x' is 1; this field is not known"},
      {R"("version")", single + R"([{"Sequence":{"id":"A","type_id":0},"x":1}],"pair":[]},"version")",
       "x' is 1; this field is not known"},
      {R"("version")", R"("post_processor":{"type":"BertProcessing","sep":["a",1],"cls":["b",1],"x":1},"version")",
       "x' is 1; this field is not known"},
      {R"("ab":256)", R"("ab":257)", "a piece of model.vocab has this id"},
      {"[{",
       R"([{"id":257,"content":"<y>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
       R"("special":true},{"id":258,"content":"<y>","single_word":false,"lstrip":false,"rstrip":false,)"
       R"("normalized":false,"special":true},{)",
       "its content or its id is there twice"},
      instead("decoder", R"({"type":"Metaspace","replacement":"_","x":1})", "x' is 1; this field is not known"),
      instead("pre_tokenizer",
              R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
              R"("use_regex":true},{"type":"Digits","individual_digits":true}]})",
              "a step behind ByteLevel"),
      {R"("version")", R"("post_processor":{"type":"ByteLevel","x":1},"version")", "x' is 1; this field is not known"},
      {R"("version")", R"("post_processor":{"type":"BertProcessing","sep":["a"],"cls":["b",1]},"version")",
       "expected a token and its id"},
      {R"("version")", R"("post_processor":{"type":"BertProcessing","sep":["a",999],"cls":["b",1]},"version")",
       "id 999 is not in the vocabulary"},
  };
  expect_refusals(byte_level_json({"ab"}, {"a b"}, kAdded), refusals,
                  [](const std::string& text) { parse_tokenizer_json(text, "t.json"); });
  const auto model_of = [](const char* text) { return message_of([&] { parse_tokenizer_json(text, "t.json"); }); };
  CHECK_THAT(model_of(R"({"model":{"type":"BPE","merges":[]}})"), Catch::Contains("'model.vocab' is missing"));
  CHECK_THAT(model_of(R"({"model":{"type":"BPE","vocab":{"a":0}}})"), Catch::Contains("'model.merges' is missing"));
}

TEST_CASE("each wrong line of a tiktoken file is refused with its reason") {
  const std::string line = "YWI= 256\n";
  expect_refusals(tiktoken_text({"ab"}),
                  {{line, "YWI=\n", "expected base64, a space and a rank"},
                   {line, "YWI= 16777216\n", "expected a rank below 16777216"},
                   {line, "YWI= x\n", "expected a rank below 16777216"},
                   {line, "YWI= 80000\n", "the rank is far beyond the number of lines"},
                   {line, "YWI= 255\n", "the rank is there twice"},
                   {line, "YW*= 256\n", "is no base64 of 1 to 65535 bytes"}},
                  [](const std::string& text) { parse_tiktoken(text, "f", "llama3"); });
  CHECK_THAT(message_of([] { parse_tiktoken("\n\n", "f", "llama3"); }), Catch::Contains("holds no pieces"));
}

TEST_CASE("each wrong field of a tekken.json is refused by name") {
  expect_refusals(
      tekken_json({"ab"}),
      {{R"("rank":5,)", R"("rank":7,)", "vocab[5] has the rank 7"},
       {R"("token_bytes":"YWI=",)", "", "has no token_bytes"},
       {R"("v3")", R"("v11")", "files of this version list their special_tokens"},
       {"{", R"({"special_tokens":[{"rank":1,"token_str":"a","is_control":true}],)", "position in the list"},
       {"{", R"({"special_tokens":[{"rank":0,"token_str":"a","is_control":true,"x":1}],)",
        "x' is 1; this field is not known"},
       {"{", R"({"special_tokens":[{"rank":0,"token_str":"<SPECIAL_1>","is_control":true}],)", "is there twice"},
       {R"("default_vocab_size":277,"default_num_special_tokens":20)",
        R"("default_vocab_size":276,"default_num_special_tokens":19)", "there are more than 19"},
       {R"("default_vocab_size":277)", R"("default_vocab_size":278)", "the file has 257 pieces"},
       {"{", R"({"extra":1,)", "extra' is 1; this field is not known"},
       {R"("version")", R"("extra":1,"version")", "extra' is 1; this field is not known"},
       {"]}", "]} x", "text behind the end of the object"},
       {"v3", "\xFF", "is not UTF-8"}},
      [](const std::string& text) { parse_tekken(text, "tekken.json"); });
}
