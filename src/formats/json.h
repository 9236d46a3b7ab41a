// Strict reading of external JSON: a wrong type is an error and never converted. Errors name the file, the key's full
// name, the value found (80 characters of it, printable) and the expected one.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tokamak {

struct JsonSource {
  std::string where;  // the file, or file:line
  Kind kind = Kind::kData;
  std::string hint = "";  // default hint of errors
};

// A value in a JsonDocument, which must outlive it: "shards[3].name". It may be missing; using it then is an error.
class JsonValue {
 public:
  JsonValue operator[](const std::string& key) const;  // a member of an object
  std::vector<std::string> keys() const;               // of an object, sorted
  std::vector<JsonValue> items() const;                // of a list

  bool present() const;  // neither missing nor null
  bool is_missing() const { return value_ == nullptr; }
  bool is_null() const;
  bool is_list() const;
  bool is_text() const;
  bool is_whole() const;           // an integer that fits int64_t
  bool starts_with_whole() const;  // a list whose first item is_whole()

  std::string text() const;
  bool truth() const;
  double number() const;
  int64_t whole(int64_t least = 0, int64_t most = INT64_MAX) const;
  std::vector<std::string> texts() const;  // of a list of strings
  std::vector<int64_t> counts() const;     // of a list of whole numbers from 0

  // Return text(), truth(), number() or whole() if present(), else `otherwise`.
  std::string text_or(const std::string& otherwise) const { return present() ? text() : otherwise; }
  bool truth_or(bool otherwise) const { return present() ? truth() : otherwise; }
  double number_or(double otherwise) const { return present() ? number() : otherwise; }
  int64_t whole_or(int64_t otherwise) const { return present() ? whole() : otherwise; }

  bool operator==(const JsonValue& other) const;  // of two present values: the same JSON

  const JsonSource& source() const { return *source_; }
  // Error: "WHERE: 'NAME' is VALUE; WHAT".
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonSource& source, const nlohmann::json* value, std::string name)
      : source_(&source), value_(value), name_(std::move(name)) {}
  void expect(bool holds, const char* expected) const;
  void expect_object() const;

  const JsonSource* source_;
  const nlohmann::json* value_;  // nullptr: missing
  std::string name_;
};

// kStrict: no duplicate keys, nested 16 deep at most. kLenient: for text with arbitrary members besides those that are
// read; nested kDeepestJson deep at most (parse_json.h).
enum class JsonRules { kStrict, kLenient };

// The text of one JSON object, in UTF-8.
class JsonDocument {
 public:
  JsonDocument(std::string_view text, JsonSource source, JsonRules rules = JsonRules::kStrict);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // Reads a file of at most kLargestText bytes (base/file.h).
  static JsonDocument read(const std::string& path, Kind kind);

  JsonValue root() const;
  JsonValue operator[](const std::string& key) const { return root()[key]; }

 private:
  JsonSource source_;
  std::unique_ptr<const nlohmann::json> json_;
};

}  // namespace tokamak
