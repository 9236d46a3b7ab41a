#include "formats/json.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>

#include "formats/parse_json.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

constexpr const char* kText = R"({
  "name": "x", "list": ["a", "b", 3], "empty": [], "none": null, "yes": true, "half": 0.5, "two": 2.0,
  "large": 18446744073709551615, "least": -9223372036854775808,
  "outer": {"inner": {"size": -1}, "all": [{"id": 1}, {"id": "2"}]}
})";

using Read = std::function<void(const JsonDocument&)>;

// The error when `read` takes something out of kText.
std::string error_of(const Read& read) {
  try {
    read(JsonDocument(kText, {"dir/file.json:7", Kind::kCheckpoint, "look there"}));
    return "accepted";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    CHECK(error.hint() == "look there");
    return error.what();
  }
}

std::string parse_error(const std::string& text, JsonRules rules = JsonRules::kStrict) {
  try {
    JsonDocument(text, {"dir/file.json"}, rules);
    return "accepted";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kData);
    return error.what();
  }
}

}  // namespace

TEST_CASE("members are taken by key and type, of objects and lists inside of each other") {
  const JsonDocument json(kText, {"x"});
  CHECK(json["name"].text() == "x");
  CHECK(json["yes"].truth());
  CHECK(json["half"].number() == 0.5);
  CHECK(json["least"].number() == -0x1p63);
  CHECK(json["least"].whole(INT64_MIN) == INT64_MIN);
  CHECK(json["outer"]["inner"]["size"].whole(-1) == -1);
  CHECK(json["outer"]["all"].items().at(0)["id"].whole() == 1);
  CHECK(json["empty"].texts().empty());
  CHECK(json["outer"].keys() == std::vector<std::string>{"all", "inner"});
}

TEST_CASE("a missing or null member has the caller's default, and a wrong type is an error") {
  const JsonDocument json(kText, {"x"});
  for (const char* key : {"none", "gone"}) {
    CHECK_FALSE(json[key].present());
    CHECK(json[key].text_or("y") == "y");
    CHECK(json[key].truth_or(true));
    CHECK(json[key].number_or(1.5) == 1.5);
    CHECK(json[key].whole_or(7) == 7);
  }
  CHECK(json["gone"].is_missing());
  CHECK(json["none"].is_null());
  CHECK_FALSE(json["large"].is_whole());
  CHECK(error_of([](const auto& j) { j["name"].whole_or(1); }) ==
        "dir/file.json:7: 'name' is \"x\"; expected a whole number from 0");
}

TEST_CASE("an error names the file, the whole name of the key, the value and what was expected") {
  const std::vector<std::pair<std::string, Read>> cases = {
      {"'gone' is missing; expected a string", [](const auto& j) { j["gone"].text(); }},
      {"'none' is null; expected a number", [](const auto& j) { j["none"].number(); }},
      {"'yes' is true; expected a string", [](const auto& j) { j["yes"].text(); }},
      {"'half' is 0.5; expected true or false", [](const auto& j) { j["half"].truth(); }},
      {"'two' is 2.0; expected a whole number from 0", [](const auto& j) { j["two"].whole(); }},
      {"'large' is 18446744073709551615; expected a whole number from 0", [](const auto& j) { j["large"].whole(); }},
      {"'outer.inner.size' is -1; expected a whole number from 0 to 9",
       [](const auto& j) { j["outer"]["inner"]["size"].whole(0, 9); }},
      {"'outer.all[0].id' is 1; expected a whole number from -5 to 0",
       [](const auto& j) { j["outer"]["all"].items()[0]["id"].whole(-5, 0); }},
      {"'outer.all[1].id' is \"2\"; expected a whole number from 0",
       [](const auto& j) {
         for (const JsonValue& item : j["outer"]["all"].items()) item["id"].whole();
       }},
      {"'list[2]' is 3; expected a string", [](const auto& j) { j["list"].texts(); }},
      {"'name' is \"x\"; expected a list", [](const auto& j) { j["name"].items(); }},
      {"'gone' is missing; expected an object", [](const auto& j) { j["gone"]["key"].text(); }},
      {"'yes' is true; no", [](const auto& j) { j["yes"].refuse("no"); }},
  };
  for (const auto& [expected, read] : cases) CHECK(error_of(read) == "dir/file.json:7: " + expected);
}

TEST_CASE("text that is no JSON object is refused; what is hostile only where the text is a file's") {
  using Catch::StartsWith;
  CHECK_THAT(parse_error("{\"a\": "), StartsWith("dir/file.json is not valid JSON: "));
  CHECK_THAT(parse_error("{\"a\": \"\xFF\"}"), StartsWith("dir/file.json is not valid JSON: "));
  CHECK(parse_error(std::string("{\"a\": 1}\0{", 10)) == "dir/file.json is not valid JSON: its byte 9 is NUL");
  CHECK(parse_error("[1]") == "dir/file.json is not a JSON object, but a JSON array");
  const std::string twice = R"({"a": {"b": 1, "b": 2}})";
  CHECK(parse_error(twice) == "dir/file.json has the key 'b' twice");
  CHECK(parse_error(twice, JsonRules::kLenient) == "accepted");
  CHECK(parse_error(R"({"a": {"b": 1}, "b": 2})") == "accepted");
  const std::string deep = "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}";
  CHECK(parse_error(deep) == "dir/file.json is nested more than 16 deep");
  CHECK(parse_error(deep, JsonRules::kLenient) == "accepted");
  CHECK(parse_error("{\"a\": \"" + std::string(300, '[') + "\\\"[\"}", JsonRules::kLenient) == "accepted");  // a string
  for (const char* bracket : {"[", "{\"k\":"}) {
    std::string bomb = "{\"a\":";
    for (int i = 0; i < 400'000; ++i) bomb += bracket;
    CHECK(parse_error(bomb, JsonRules::kLenient) == "dir/file.json is nested more than 256 deep");
  }
}

TEST_CASE("a line of others has 4096 members at most") {
  const auto line_of = [](int64_t members) {
    std::string line = R"({"a:":":\":")";  // one member: these colons are text
    for (int64_t i = 1; i < members; ++i) line += str(",\"", i, "\":{}");
    return line + "}";
  };
  CHECK(try_parse_json(line_of(4096)).size() == 4096);
  CHECK(try_parse_json(line_of(4097)).is_discarded());
}

TEST_CASE("an error shows 80 printable characters of a value and of a name") {
  const std::string longest(1 << 20, 'x');
  const auto error = [&](const std::string& text, const std::string& key) {
    const JsonDocument json(text, {"f.json"});
    try {
      static_cast<void>(json[key].truth());
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(error("{\"a\": \"" + longest + "\"}", "a") ==
        "f.json: 'a' is \"" + std::string(79, 'x') + "...; expected true or false");
  CHECK(error("{\"" + longest + "\": 1}", longest) ==
        "f.json: '" + std::string(80, 'x') + "...' is 1; expected true or false");
  CHECK(error("{\"a\\n\": \"\\u009b31m\"}", "a\n") == "f.json: 'a\\n' is \"\\u009b31m\"; expected true or false");
  CHECK(parse_error("{\"a\": \"" + longest).size() < 300);
}

TEST_CASE("a file that no description of a model can be is refused before it is read") {
  const TempDir dir;
  std::ofstream(dir.file("a.json")) << "{\"b\": 3}";
  CHECK(JsonDocument::read(dir.file("a.json"), Kind::kCheckpoint)["b"].whole() == 3);
  std::filesystem::resize_file(dir.file("a.json"), (int64_t{64} << 20) + 1);
  CHECK_THROWS_WITH(JsonDocument::read(dir.file("a.json"), Kind::kCheckpoint),
                    Catch::Contains("a.json has 64.0 MiB; such a file is never above 64.0 MiB"));
}

TEST_CASE("a whole number is one that its type holds: none is cut, wrapped or rounded") {
  const auto is_whole = [](const char* text, auto type) {
    try {
      return whole_of<decltype(type)>(nlohmann::json::parse(text)) == nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception&) {
      return false;
    }
  };
  for (const char* text : {"0", "-2147483648", "2147483647"}) CHECK(is_whole(text, int32_t{}));
  for (const char* text : {"-2147483649", "2147483648", "1.0", "6e128", "null", "\"7\""})
    CHECK_FALSE(is_whole(text, int32_t{}));
  for (const char* text : {"9223372036854775807", "-9223372036854775808"}) CHECK(is_whole(text, int64_t{}));
  for (const char* text : {"9223372036854775808", "18446744073709551615", "1e300"})
    CHECK_FALSE(is_whole(text, int64_t{}));
}
