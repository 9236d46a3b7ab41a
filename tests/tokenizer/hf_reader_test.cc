// The readers of tokenizer.json, .tiktoken and tekken.json, and the files beside them.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "hf_files.h"
#include "support/temp_dir.h"
#include "tokenizer/hf/json_cursor.h"
#include "tokenizer/hf/tiktoken_file.h"
#include "tokenizer/model_builder.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;
using Catch::Matchers::Contains;

namespace {

std::vector<int32_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  tokenizer.make_encoder()->encode(text, ids);
  return ids;
}

void write(const TempDir& dir, const std::string& name, const std::string& text) {
  write_text_atomically(dir.file(name), text, Kind::kData);
}

std::string added(const std::string& content, int id, bool special) {
  return str(R"({"id":)", id, R"(,"content":")", content, R"(","single_word":false,"lstrip":false,"rstrip":false,)",
             R"("normalized":false,"special":)", special ? "true" : "false", "}");
}

const std::string kTokens = "[" + added("<|end|>", 257, true) + "," + added("<x>", 258, false) + "]";

}  // namespace

TEST_CASE("the cursor reads JSON strings and whole numbers strictly") {
  std::string buffer;
  const auto string = [&](std::string_view text) { return std::string(JsonCursor(text, "f").string(buffer)); };
  CHECK(string(R"("plain")") == "plain");
  CHECK(string(R"("a\n\"\\\/\u00e9\ud83d\ude00")") == "a\n\"\\/\xC3\xA9\xF0\x9F\x98\x80");
  for (const char* bad : {R"("\ud83d")", R"("\ud83d\u0041")", R"("\ude00")", R"("\ud83dx")", R"("\x")", R"("\u12")",
                          R"("open)", "\"a\nb\"", "5"}) {
    CHECK_THROWS_AS(string(bad), Error);
  }
  CHECK(JsonCursor(" 41,", "f").whole(50) == 41);
  for (const char* bad : {"51", "-1", "1.0", "1e1", "01", "x", "99999999999999999999"}) {
    CHECK_THROWS_AS(JsonCursor(bad, "f").whole(50), Error);
  }
  CHECK(JsonCursor(R"( [1,{"a":"]"}] ,)", "f").raw_value() == R"([1,{"a":"]"}])");
  CHECK_THROWS_WITH(JsonCursor(std::string(17, '['), "f").raw_value(), Contains("f: offset 16"));
  CHECK_THROWS_WITH(JsonCursor("[1,", "f").raw_value(), Contains("the text ends within a value"));
  CHECK_THROWS_WITH(JsonCursor(",", "f").raw_value(), Contains("expected a value"));
}

TEST_CASE("BOS and EOS come from the files beside a tokenizer.json, and are unknown without them") {
  const TempDir dir;
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, kTokens));
  CHECK(load_tokenizer(dir.path())->eos_id() == -1);
  write(dir, "generation_config.json", R"({"eos_token_id": [257, 3], "bos_token_id": 5})");
  CHECK(load_tokenizer(dir.path())->eos_id() == -1);  // a list does not say which of them ends a document
  CHECK(load_tokenizer(dir.path())->bos_id() == 5);
  write(dir, "special_tokens_map.json", R"({"eos_token": {"content": "<x>"}, "bos_token": "no such token"})");
  CHECK(load_tokenizer(dir.path())->eos_id() == 258);
  write(dir, "tokenizer_config.json", R"({"eos_token": "<|end|>", "chat_template": "{{ x }}"})");
  const auto tokenizer = load_tokenizer(dir.file("tokenizer.json"));
  CHECK(tokenizer->eos_id() == 257);
  CHECK(tokenizer->kind(257) == PieceType::kControl);
  CHECK(tokenizer->kind(258) == PieceType::kUserDefined);
  CHECK(tokenizer->kind(256) == PieceType::kNormal);
  CHECK(load_tokenizer(dir.path(), {SpecialsPolicy::kIds, "ab"})->eos_id() == 256);
  CHECK_THROWS_WITH(load_tokenizer(dir.path(), {SpecialsPolicy::kIds, "abc"}), Contains("'abc' is no token"));
}

TEST_CASE("a tokenizer's copy has its identity, its ids and its EOS token") {
  const TempDir dir;
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, kTokens));
  write(dir, "ranks.tiktoken", tiktoken_text({"ab", "abab"}));
  write(dir, "tekken.json", tekken_json({"ab", "abab"}));
  const std::string text = "abab <x> <|end|> <|end_of_text|> \xC3\xA9";
  for (const std::string path : {"tokenizer.json", "ranks.tiktoken#llama3", "tekken.json"}) {
    const bool names_eos = path == "tokenizer.json";
    const auto original = load_tokenizer(dir.file(path), {SpecialsPolicy::kIds, names_eos ? "<|end|>" : ""});
    const TempDir other;
    const std::string name = original->copy_files(other.path());
    for (const std::string& copy : {other.file(name), other.path()}) {
      const auto again = load_tokenizer(copy);
      CHECK(again->hash() == original->hash());
      CHECK(again->eos_id() == original->eos_id());
      CHECK(again->eos_id() >= 0);
      CHECK(ids_of(*again, text) == ids_of(*original, text));
      CHECK(again->decode(ids_of(*again, text)) == original->decode(ids_of(*original, text)));
    }
    CHECK(tokenizer_files(other.file(name)).size() == (names_eos ? 2 : 1));
  }
}

TEST_CASE("special tokens in text are ids or text, and the identity says which") {
  const TempDir dir;
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, kTokens));
  const auto ids = load_tokenizer(dir.path());
  const auto text = load_tokenizer(dir.path(), {SpecialsPolicy::kText, ""});
  CHECK(ids_of(*ids, "<|end|><x>") == std::vector<int32_t>{257, 258});
  CHECK(ids_of(*text, "<|end|><x>") == std::vector<int32_t>{'<', '|', 'e', 'n', 'd', '|', '>', 258});
  CHECK(text->hash() == ids->hash() + "-text");
  CHECK(specials_policy_of(text->hash()) == SpecialsPolicy::kText);
  CHECK(specials_policy_of(ids->hash()) == SpecialsPolicy::kIds);
  expect_tokenizer_of("a model", text->hash(), *ids);  // the vocabulary is the same
  CHECK_THROWS_WITH(expect_tokenizer_of("a model", std::string(32, '0') + "-text", *ids), Contains("was made with"));
}

TEST_CASE("a tiktoken file needs the preset of its vocabulary") {
  const TempDir dir;
  write(dir, "tokenizer.model", tiktoken_text({"ab"}));
  CHECK_THROWS_WITH(load_tokenizer(dir.file("tokenizer.model")), Contains("is a tiktoken file"));
  CHECK_THROWS_WITH(load_tokenizer(dir.file("tokenizer.model") + "#llama9"), Contains("no preset 'llama9'"));
  CHECK(load_tokenizer(dir.file("tokenizer.model") + "#llama3")->bos_id() == 257);
  CHECK(load_tokenizer(dir.file("tokenizer.model") + "#gpt2")->eos_id() == 50256);
  CHECK(load_tokenizer(dir.file("tokenizer.model") + "#gpt2")->hash() !=
        load_tokenizer(dir.file("tokenizer.model") + "#qwen")->hash());
  CHECK(preset_of_name(name_with_preset("llama3")) == "llama3");
  CHECK(preset_of_name("tokenizer.model").empty());
  write(dir, "gaps", tiktoken_text({"ab"}) + "eA== 50256\n");
  CHECK_THROWS_WITH(load_tokenizer(dir.file("gaps") + "#gpt2"), Contains("there twice"));
  write(dir, "other", tiktoken_text({"ab"}) + "eHh4eA== 50256\n");
  CHECK_THROWS_WITH(load_tokenizer(dir.file("other") + "#gpt2"), Contains("it is of another vocabulary"));
  for (const char* bad :
       {"YQ== 16777216\n", "YQ==\n", "Y 0\n", "YQ== x\n", "YQ== -1\n", "Y*== 1\n", "YQ== 100000\n", "", "YQ== 0\n"}) {
    write(dir, "bad", bad);
    CHECK_THROWS_WITH(load_tokenizer(dir.file("bad") + "#gpt2"), Contains("bad"));
  }
}

TEST_CASE("tekken's control tokens are never found in text") {
  const TempDir dir;
  write(dir, "tekken.json", tekken_json({"ab", "abab"}));
  const auto tokenizer = load_tokenizer(dir.file("tekken.json"));
  CHECK(ids_of(*tokenizer, "abab") == std::vector<int32_t>{20 + 257});
  CHECK(ids_of(*tokenizer, "</s>").size() == 4);
  CHECK(tokenizer->bos_id() == 1);
  CHECK(tokenizer->eos_id() == 2);
  CHECK(tokenizer->decode(std::vector<int32_t>{1, 20 + 257, 2}) == "abab");
}

TEST_CASE("a small tekken.json does not ask for gigabytes of control tokens") {
  const TempDir dir;
  std::string text = tekken_json({"ab"});
  const auto put = [&](const std::string& key, int64_t from, int64_t to) {
    const std::string old = str('"', key, "\":", from, ",");
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), str('"', key, "\":", to, ","));
  };
  put("default_num_special_tokens", 20, 16'000'000);
  put("default_vocab_size", 277, 16'000'257);
  write(dir, "tekken.json", text);
  CHECK_THROWS_WITH(load_tokenizer(dir.file("tekken.json")), Contains("default_num_special_tokens"));
}

TEST_CASE(
    "of tokenizer.model and tokenizer.json in a directory the one with more tokens is taken, else tokenizer.model") {
  const TempDir dir;
  ModelBuilder pieces;
  while (pieces.pieces.size() < 257) pieces.add(str("piece", pieces.pieces.size()), -10);
  pieces.write(dir.file("tokenizer.model"));
  const auto found = [&] { return find_tokenizer(dir.path()).substr(dir.path().size() + 1); };
  CHECK(found() == "tokenizer.model");
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, "[]"));
  REQUIRE(load_tokenizer(dir.file("tokenizer.json"))->vocab_size() == 257);
  CHECK(found() == "tokenizer.model");
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, kTokens));
  CHECK(found() == "tokenizer.json");
  CHECK(load_tokenizer(dir.path())->vocab_size() == 259);
  write(dir, "tokenizer.json", "{}");  // of a kind that cannot be read
  CHECK(found() == "tokenizer.model");
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b"}, "[]"));
  write(dir, "tokenizer.model", "no model");
  CHECK(found() == "tokenizer.json");
}

TEST_CASE("a file that is no tokenizer is refused by name") {
  const TempDir dir;
  for (const char* text : {R"({"a": 1})", "{}", "{", R"({"model": {}})", R"({"model": {"vocab": {}, "merges": []}})"}) {
    write(dir, "some.json", text);
    CHECK_THROWS_WITH(load_tokenizer(dir.file("some.json")), Contains(dir.file("some.json")));
  }
  write(dir, "some.json", "no JSON");
  CHECK_THROWS_WITH(load_tokenizer(dir.file("some.json")), Contains("some.json is not JSON: it begins with no {"));
  CHECK_THROWS_WITH(load_tokenizer(dir.file("")), Contains("holds no tokenizer.json"));
}

TEST_CASE("a key that is there twice is refused") {
  const TempDir dir;
  const auto message_of = [&](const std::string& text) {
    write(dir, "tokenizer.json", text);
    try {
      load_tokenizer(dir.path());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto with = [](std::string text, const std::string& before, const std::string& member) {
    return text.insert(text.find(before), member + ",");
  };
  const std::string file = byte_level_json({"ab"}, {"a b"}, "[" + added("<x>", 257, true) + "]");
  REQUIRE(message_of(file).empty());
  CHECK_THAT(message_of(with(file, R"("merges")", R"("merges":[])")), Contains("'model.merges' is there twice"));
  CHECK_THAT(message_of(with(file, R"("vocab")", R"("vocab":{"a":0})")), Contains("'model.vocab' is there twice"));
  CHECK_THAT(message_of(with(file, R"("model")", R"("model":{})")), Contains("the key 'model' twice"));
  for (const char* key : {"version", "added_tokens", "pre_tokenizer", "decoder"}) {
    const std::string quoted = str('"', key, '"');
    CHECK_THAT(message_of(with(file, quoted, quoted + ":null")), Contains(str("the key '", key, "' twice")));
  }
  CHECK_THAT(message_of(with(file, R"("vocab")", R"("fuse_unk":true,"fuse_unk":true)")), Contains("'fuse_unk'"));
  CHECK_THAT(message_of(with(file, R"("content")", R"("content":"y")")), Contains("'content'"));
  CHECK_THAT(message_of(with(file, R"("use_regex")", R"("use_regex":true)")), Contains("'use_regex'"));

  write(dir, "tekken.json", with(tekken_json({"ab"}), R"("vocab")", R"("vocab":[])"));
  CHECK_THROWS_WITH(load_tokenizer(dir.file("tekken.json")), Contains("'vocab'"));
}

TEST_CASE("the later of equal merges counts, and each merge has its own result") {
  const TempDir dir;
  write(dir, "tokenizer.json",
        byte_level_json({"ab", "cb", "bd", "xab"}, {"x ab", "a b", "a b", "c b", "b d", "a b"}, "[]"));
  const auto tokenizer = load_tokenizer(dir.path());
  CHECK(ids_of(*tokenizer, "abd") == std::vector<int32_t>{'a', 258});
  CHECK(ids_of(*tokenizer, "ab") == std::vector<int32_t>{256});
  CHECK(ids_of(*tokenizer, "cb") == std::vector<int32_t>{257});
  write(dir, "tokenizer.json", byte_level_json({"ab"}, {"a b", "a b"}, "[]"));
  CHECK(ids_of(*load_tokenizer(dir.path()), "ab") == std::vector<int32_t>{256});
}
