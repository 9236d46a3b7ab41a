// Documents come back from their lines, and lines that are none say why.
#include "data/pipeline/document_line.h"

#include <catch2/catch.hpp>

#include "formats/json.h"

using namespace tokamak;

namespace {

Document read(const std::string& line) {
  DocumentLineReader reader("text");
  Document document;
  LineProblem problem;
  INFO(line);
  REQUIRE(reader.read(line, document, problem));
  return document;
}

std::string problem_of(const std::string& line) {
  DocumentLineReader reader("text");
  Document document;
  LineProblem problem;
  return reader.read(line, document, problem) ? "" : problem.what;
}

std::string line_of(const Document& document) {
  std::string out;
  append_document_line(document, out);
  return out;
}

}  // namespace

TEST_CASE("a document's members come back") {
  Document document;
  document.text = "one\n\"two\"\t\\ \x01 \u00e9\U0001f600";
  document.id = "<urn:uuid:1>";
  document.url = "http://a.example/?b=c&d";
  document.language = "en";
  document.values = {{"gopher_quality.words", 312}, {"language_score", 0.1}, {"tiny", 5e-324}};
  document.reason = "nemo.digits";
  document.metadata = R"({"date": "2024-05-01", "n": [1, {"a": null}]})";
  const std::string line = line_of(document);
  CHECK(line.find('\n') == std::string::npos);
  const Document back = read(line);
  CHECK(back.text == document.text);
  CHECK(back.id == document.id);
  CHECK(back.url == document.url);
  CHECK(back.language == "en");
  CHECK(back.reason == "nemo.digits");
  CHECK(back.metadata == document.metadata);
  REQUIRE(back.values.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(back.values[i].name == document.values[i].name);
    CHECK(back.values[i].value == document.values[i].value);
  }
  CHECK(line_of(back) == line);
  CHECK(JsonDocument(line, {"line"}, JsonRules::kLenient)["text"].text() == document.text);  // by another reader
}

TEST_CASE("others' members are metadata, a number may be an id, and null is nothing") {
  const Document document = read(R"( {"url": null, "dump": "CC", "id": 17 , "text": "t", "file_path": ["a"]} )");
  CHECK(document.id == "17");
  CHECK(document.url.empty());
  CHECK(document.metadata == R"({"dump": "CC", "file_path": ["a"]})");
  CHECK(read(R"({"text": "t", "metadata": {"a": 1}})").metadata == R"({"a": 1})");
  CHECK(read(R"({"text": "t", "metadata": {"a": 1}, "b": 2})").metadata == R"({"metadata": {"a": 1}, "b": 2})");
  CHECK(read(R"({"text": ""})").text.empty());
  CHECK(read(R"({"text": "\u00e9\ud83d\ude00\n"})").text == "\u00e9\U0001f600\n");
}

TEST_CASE("a reader is used again, and keeps nothing of the document before") {
  DocumentLineReader reader("body");
  Document document;
  LineProblem problem;
  REQUIRE(reader.read(R"({"body": "long text", "id": "a", "url": "u", "attributes": {"x": 1}, "m": 1})", document,
                      problem));
  REQUIRE(reader.read(R"({"body": "b"})", document, problem));
  CHECK(document.text == "b");
  CHECK(document.id.empty());
  CHECK(document.url.empty());
  CHECK(document.values.empty());
  CHECK(document.metadata.empty());
}

TEST_CASE("members of another type than ours are metadata, and nothing is lost") {
  const Document document =
      read(R"({"attributes": {"x": 1, "y": "z"}, "url": 5, "text": "a", "language": ["en"], "id": 7, "reason": null})");
  CHECK(document.id == "7");
  CHECK(document.url.empty());
  CHECK(document.values.empty());
  CHECK(document.metadata == R"({"attributes": {"x": 1, "y": "z"}, "url": 5, "language": ["en"]})");
  CHECK(read(line_of(document)).metadata == document.metadata);
  CHECK(read(R"({"text": "a", "attributes": {"x": null, "y": 2}})").values.size() == 1);
}

TEST_CASE("what is written is never nested deeper than what is read") {
  const auto line = [](const char* name, size_t depth) {
    return str("{\"text\": \"a\", \"", name, "\": ", std::string(depth, '['), std::string(depth, ']'), "}");
  };
  size_t deepest = 1;
  while (problem_of(line("x", deepest + 1)).empty()) ++deepest;
  const std::string written = line_of(read(line("x", deepest)));
  CHECK(problem_of(written).empty());
  CHECK(line_of(read(written)) == written);
}

TEST_CASE("a line that is no document says why") {
  CHECK(problem_of("").find("no JSON object") != std::string::npos);
  CHECK(problem_of("[1]").find("no JSON object") != std::string::npos);
  CHECK(problem_of("nonsense").find("no JSON object") != std::string::npos);
  CHECK(problem_of(R"({"id": "a"})") == "it has no 'text'");
  CHECK(problem_of(R"({"text": 5})") == "its 'text' is no text");
  CHECK(problem_of(R"({"text": null})") == "its 'text' is no text");
  CHECK_FALSE(problem_of(R"({"text": "a)").empty());
  CHECK_FALSE(problem_of(R"({"text": "a"} x)").empty());
  CHECK_FALSE(problem_of(R"({"text": "a\x"})").empty());
  CHECK_FALSE(problem_of("{\"text\": \"\xff\"}").empty());
  CHECK_FALSE(problem_of("{\"text\": \"a\", \"x\": " + std::string(100'000, '[') + "}").empty());
  CHECK(problem_of(R"({"text": "a", "x": [1 2]})") == "its 'x' is damaged");
  const auto nested = [](size_t depth) {
    return "{\"text\": \"a\", \"x\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(problem_of(nested(1000)) == "its members are nested too deep");  // others' readers recurse
  CHECK(problem_of(nested(200)).empty());
}
