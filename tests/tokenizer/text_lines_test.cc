#include "tokenizer/text_lines.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "model_builder.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::vector<std::string> read(const std::vector<std::string>& paths, const std::string& key = "text") {
  TextLines lines(paths, key);
  std::vector<std::string> result;
  for (std::string line; lines.next(line);) result.push_back(line);
  return result;
}

}  // namespace

TEST_CASE("text and JSON lines give the same lines") {
  const TempDir dir;
  write_quickly(dir.file("a.txt"), "one\n\n  two \nthree");
  write_quickly(dir.file("a.jsonl"), "{\"id\": 1, \"text\": \"one\\n\\n  two \"}\n\n{\"text\": \"three\"}\n");
  const std::vector<std::string> expected = {"one", "", "  two ", "three"};
  CHECK(read({dir.file("a.txt")}) == expected);
  CHECK(read({dir.file("a.jsonl")}) == expected);
  CHECK(read({dir.file("a.txt"), dir.file("a.jsonl")}).size() == 8);
}

TEST_CASE("empty files have no lines") {
  const TempDir dir;
  write_quickly(dir.file("empty.txt"), "");
  write_quickly(dir.file("a.txt"), "one\ntwo");
  CHECK(read({dir.file("empty.txt")}).empty());
  CHECK(read({dir.file("empty.txt"), dir.file("a.txt"), dir.file("empty.txt")}) ==
        std::vector<std::string>{"one", "two"});
}

TEST_CASE("the member that holds the text can be named") {
  const TempDir dir;
  write_quickly(dir.file("a.jsonl"), "{\"content\": \"\\u0436\"}");
  CHECK(read({dir.file("a.jsonl")}, "content") == std::vector<std::string>{"ж"});
}

TEST_CASE("a bad JSON line is named by file and line") {
  const TempDir dir;
  const auto message = [&](const std::string& bad) {
    write_quickly(dir.file("a.jsonl"), "{\"text\": \"good\"}\n" + bad + "\n");
    try {
      read({dir.file("a.jsonl")});
    } catch (const Error& e) {
      CHECK(e.kind() == Kind::kData);
      CHECK_THAT(e.what(), Catch::Contains("a.jsonl:2"));
      CHECK_THAT(e.hint(), Catch::Contains("\"text\""));
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message("{\"text\": "), Catch::Contains("not valid JSON"));
  CHECK_THAT(message("{\"text\": \"\xFF\"}"), Catch::Contains("not valid JSON"));
  CHECK_THAT(message("[1]"), Catch::Contains("array"));
  CHECK_THAT(message("{\"txt\": \"a\"}"), Catch::Contains("'text' is missing"));
  CHECK_THAT(message("{\"text\": 5}"), Catch::Contains("'text' is 5; expected a string"));
}

TEST_CASE("files of an unknown kind are refused before any is read") {
  CHECK_THROWS_WITH(TextLines({"/nowhere/a.txt", "b.jsonl.zst"}, "text"), Catch::Contains("b.jsonl.zst"));
}
