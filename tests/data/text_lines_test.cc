// The lines that train a tokenizer are those of the documents that `data tokenize` reads.
#include <catch2/catch.hpp>

#include "base/file.h"
#include "data/text/text_reader.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

void put_lines(const std::string& path, const std::string& text) { write_text_atomically(path, text, Kind::kData); }

std::vector<std::string> read(const std::vector<std::string>& paths, const std::string& key = "text") {
  const std::vector<TextFile> files = find_text_files(paths);
  TextLines lines(files, key);
  std::vector<std::string> result;
  for (std::string line; lines.next(line);) result.push_back(line);
  return result;
}

}  // namespace

TEST_CASE("text and JSON lines give the same lines") {
  const TempDir dir;
  put_lines(dir.file("a.txt"), "one\n\n  two \nthree");
  put_lines(dir.file("a.jsonl"), "{\"id\": 1, \"text\": \"one\\n\\n  two \"}\n\n{\"text\": \"three\"}\n");
  const std::vector<std::string> expected = {"one", "", "  two ", "three"};
  CHECK(read({dir.file("a.txt")}) == expected);
  CHECK(read({dir.file("a.jsonl")}) == expected);
  CHECK(read({dir.file("a.txt"), dir.file("a.jsonl")}).size() == 8);
  put_lines(dir.file("b.txt"), "one\r\n\r\ntwo\fthree\r\n");
  CHECK(read({dir.file("b.txt")}) == std::vector<std::string>{"one", "", "two", "three"});
  put_lines(dir.file("c.txt"), std::string(700'000, 'a') + "\n" + std::string(600'000, 'b') + "\n\nc\n");
  CHECK(read({dir.file("c.txt")}).size() == 4);  // longer than the text in memory, which ends at a line
}

TEST_CASE("empty files have no lines") {
  const TempDir dir;
  put_lines(dir.file("empty.txt"), "");
  put_lines(dir.file("empty.jsonl"), "");
  put_lines(dir.file("a.txt"), "one\ntwo");
  CHECK(read({dir.file("empty.txt")}).empty());
  CHECK(read({dir.file("empty.txt"), dir.file("a.txt"), dir.file("empty.jsonl")}) ==
        std::vector<std::string>{"one", "two"});
}

TEST_CASE("the member that holds the text can be named") {
  const TempDir dir;
  put_lines(dir.file("a.jsonl"), "{\"content\": \"\\u0436\"}");
  CHECK(read({dir.file("a.jsonl")}, "content") == std::vector<std::string>{"ж"});
}

TEST_CASE("a bad JSON line is named by file and line") {
  const TempDir dir;
  const auto message = [&](const std::string& bad) {
    put_lines(dir.file("a.jsonl"), "{\"text\": \"good\"}\n" + bad + "\n");
    try {
      read({dir.file("a.jsonl")});
    } catch (const Error& e) {
      CHECK(e.kind() == Kind::kData);
      CHECK_THAT(e.what(), Catch::Contains("a.jsonl:2"));
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message("{\"text\": "), Catch::Contains("not valid JSON"));
  CHECK_THAT(message("{\"text\": \"\xFF\"}"), Catch::Contains("not valid JSON"));
  CHECK_THAT(message("[1]"), Catch::Contains("array"));
  CHECK_THAT(message("{\"txt\": \"a\"}"), Catch::Contains("'text' is missing; the members are txt"));
  CHECK_THAT(message("{\"text\": 5}"), Catch::Contains("'text' is 5; expected a string"));
}
