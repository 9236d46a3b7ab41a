// The scanner of a member reads what the JSON library reads, and decides every ordinary line.
#include "formats/json_member.h"

#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "formats/json.h"

using namespace tokamak;

namespace {

std::optional<std::string> by_library(const std::string& line) {
  try {
    return JsonDocument(line, {"line"}, JsonRules::kLenient)["text"].text();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<std::string> by_scanner(const std::string& line) {
  std::string text;
  if (!read_json_text(line, "text", text)) return std::nullopt;
  return text;
}

std::string nested(int depth) {
  std::string line = "{\"a\":";
  for (int i = 0; i < depth; ++i) line += i % 2 == 0 ? "[" : "{\"b\":";
  line += "1";
  for (int i = depth - 1; i >= 0; --i) line += i % 2 == 0 ? "]" : "}";
  return line + ",\"text\":\"x\"}";
}

}  // namespace

TEST_CASE("the scanner decides every ordinary line, as the JSON library reads it") {
  const std::vector<std::string> lines = {
      R"({"text":"one"})",
      R"( { "text" : "one" , "id" : 7 } )",
      R"({"text":""})",
      R"({"id":[1,-2.5e+3,0.1,{"text":"inner"},[]],"ok":true,"no":false,"nil":null,"o":{},"text":"x"})",
      R"({"text":"\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00\u0000."})",
      R"({"meta":{"text":"inner","a":{"b":[{"c":"}]"}]}},"text":"outer","text2":"no"})",
      "{\"text\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"}\r",
      nested(254),
  };
  for (const std::string& line : lines) {
    INFO(line);
    REQUIRE(by_scanner(line));
    CHECK(by_scanner(line) == by_library(line));
  }
  for (size_t before = 0; before < 70; ++before) {  // wherever the blocks of 32 bytes end
    for (const char* escape : {"\\n", "\\ud83d\\ude00", "\xF0\x9F\x98\x80"}) {
      for (const size_t after : {0, 1, 30, 31, 32, 33, 64}) {
        const std::string line =
            "{\"text\":\"" + std::string(before, 'a') + escape + escape + std::string(after, 'b') + "\"}";
        REQUIRE(by_scanner(line));
        REQUIRE(by_scanner(line) == by_library(line));
      }
    }
  }
}

TEST_CASE("the scanner takes no line that the JSON library refuses or reads otherwise") {
  const std::vector<std::string> lines = {
      "",
      "{",
      "{}",
      "[]",
      R"("text")",
      R"({"text":"one"} x)",
      R"({"text":"one"},)",
      R"({"text":"one",})",
      R"({,"text":"one"})",
      R"({"text":"one" "a":1})",
      R"({"text":1})",
      R"({"text":null})",
      R"({"text":["a"]})",
      R"({"txt":"one"})",
      R"({"text":"one","text":2})",
      R"({"text":"one","a":01})",
      R"({"text":"one","a":-})",
      R"({"text":"one","a":1.})",
      R"({"text":"one","a":.5})",
      R"({"text":"one","a":1e999})",
      R"({"text":"one","a":+1})",
      R"({"text":"one","a":nul})",
      R"({"text":"one","a":[1 2]})",
      R"({"text":"one","a":[1}})",
      R"({"text":"one","a":[1,]})",
      R"({"text":"one","a":{"b"}})",
      R"({"text":"one","a":{1:2}})",
      R"({"text":"\x"})",
      R"({"text":"\u12g4"})",
      R"({"text":"\u12)",
      R"({"text":"\ud800"})",
      R"({"text":"\ude00"})",
      R"({"text":"\ud83d\u0041"})",
      R"({"text":"one)",
      "{\"text\":\"a\tb\"}",
      "{\"text\":\"a\xFF\"}",
      "{\"text\":\"one\",\"a\":\"\xED\xA0\x80\"}",
      nested(256),
      "{\"text\":\"one\",\"a\":" + std::string(400'000, '[') + "}",
  };
  for (const std::string& line : lines) {
    INFO(line.substr(0, 100));
    CHECK_FALSE(by_scanner(line));
    CHECK_FALSE(by_library(line));
  }
  const std::string escaped_key = R"({"te\u0078t":"one"})", twice = R"({"text":"one","text":"two"})";
  CHECK((!by_scanner(escaped_key) && by_library(escaped_key) == "one"));  // rare: left to the library
  CHECK((!by_scanner(twice) && by_library(twice) == "two"));
}

TEST_CASE("damaged lines are read as the JSON library reads them, or left to it") {
  const std::string line =
      R"({"id": [1, -2.5e3, {"k": "v"}], "text": "a \"quoted\" line\nwith \u00e9\ud83d\ude00 and more of it", "t": true})";
  const std::string bytes = "\"\\{}[]:,0e-u dn\x01\x80\xC3\xE2";
  std::mt19937 random(7);
  int decided = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string damaged = line;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      if (random() % 3 == 0) {
        damaged.erase(at, 1 + random() % 4);
      } else {
        damaged.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    const std::optional<std::string> text = by_scanner(damaged);
    if (!text) continue;
    ++decided;
    REQUIRE(text == by_library(damaged));
  }
  CHECK(decided > 5000);
}
