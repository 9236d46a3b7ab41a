#include "formats/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/printable.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

constexpr int kDeepestStrict = 16;

[[noreturn]] void fail_at(const JsonSource& source, const std::string& what) {
  fail(source.kind, source.where + what, source.hint);
}

nlohmann::json parse_strictly(std::string_view text, const JsonSource& source) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  using JsonEvent = nlohmann::json::parse_event_t;
  return nlohmann::json::parse(text, [&](int, JsonEvent event, nlohmann::json& value) {
    if (event == JsonEvent::object_start) keys.emplace_back();
    if (event == JsonEvent::object_end) keys.pop_back();
    if (event == JsonEvent::key && !keys.back().insert(value.get<std::string>()).second) {
      fail_at(source, str(" has the key '", printable(value.get<std::string>()), "' twice"));
    }
    return true;
  });
}

}  // namespace

JsonExtent extent_of_json(std::string_view text) {
  JsonExtent extent;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      extent.depth = std::max(extent.depth, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ':') {
      ++extent.members;
    }
  }
  return extent;
}

JsonDocument::JsonDocument(std::string_view text, JsonSource source, JsonRules rules) : source_(std::move(source)) {
  const int deepest = rules == JsonRules::kStrict ? kDeepestStrict : kDeepestJson;
  if (extent_of_json(text).depth > deepest) fail_at(source_, str(" is nested more than ", deepest, " deep"));
  // The library takes a NUL for the end, and reads nothing behind it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail_at(source_, str(" is not valid JSON: its byte ", nul + 1, " is NUL"));
  }
  try {
    json_ = std::make_unique<const nlohmann::json>(rules == JsonRules::kStrict ? parse_strictly(text, source_)
                                                                               : nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail_at(source_, str(" is not valid JSON: ", printable(error.what(), 160)));
  }
  if (!json_->is_object()) fail_at(source_, str(" is not a JSON object, but a JSON ", json_->type_name()));
}

JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::read(const std::string& path, Kind kind) {
  return JsonDocument(read_text(path, kind), {path, kind});
}

JsonValue JsonDocument::root() const { return {source_, json_.get(), ""}; }

JsonValue JsonValue::operator[](const std::string& key) const {
  expect_object();
  const auto found = value_->find(key);
  return {*source_, found == value_->end() ? nullptr : &*found, name_.empty() ? key : name_ + "." + key};
}

std::vector<std::string> JsonValue::keys() const {
  expect_object();
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

std::vector<JsonValue> JsonValue::items() const {
  expect(is_list(), "a list");
  std::vector<JsonValue> items;
  for (const nlohmann::json& item : *value_) items.push_back({*source_, &item, str(name_, "[", items.size(), "]")});
  return items;
}

bool JsonValue::operator==(const JsonValue& other) const { return *value_ == *other.value_; }

bool JsonValue::present() const { return value_ != nullptr && !value_->is_null(); }
bool JsonValue::is_null() const { return value_ != nullptr && value_->is_null(); }
bool JsonValue::is_text() const { return value_ != nullptr && value_->is_string(); }
bool JsonValue::is_list() const { return value_ != nullptr && value_->is_array(); }

bool JsonValue::is_whole() const {
  return value_ != nullptr && value_->is_number_integer() &&
         (!value_->is_number_unsigned() || value_->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
}

bool JsonValue::starts_with_whole() const {
  return is_list() && !value_->empty() && JsonValue(*source_, &value_->front(), name_).is_whole();
}

std::string JsonValue::text() const {
  expect(value_ != nullptr && value_->is_string(), "a string");
  return value_->get<std::string>();
}

bool JsonValue::truth() const {
  expect(value_ != nullptr && value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

double JsonValue::number() const {
  expect(value_ != nullptr && value_->is_number(), "a number");
  return value_->get<double>();
}

int64_t JsonValue::whole(int64_t least, int64_t most) const {
  if (!is_whole() || value_->get<int64_t>() < least || value_->get<int64_t>() > most) {
    refuse(str("expected a whole number from ", least, most < INT64_MAX ? str(" to ", most) : ""));
  }
  return value_->get<int64_t>();
}

std::vector<std::string> JsonValue::texts() const {
  std::vector<std::string> texts;
  for (const JsonValue& item : items()) texts.push_back(item.text());
  return texts;
}

std::vector<int64_t> JsonValue::counts() const {
  expect(is_list(), "a list");
  std::vector<int64_t> counts;
  for (const nlohmann::json& item : *value_) counts.push_back(JsonValue(*source_, &item, name_ + "[]").whole());
  return counts;
}

void JsonValue::expect_object() const { expect(value_ != nullptr && value_->is_object(), "an object"); }

void JsonValue::expect(bool holds, const char* expected) const {
  if (!holds) refuse(str("expected ", expected));
}

void JsonValue::refuse(const std::string& what, const std::string& hint) const {
  fail(source_->kind,
       str(source_->where, ": '", printable(name_), "' is ", value_ == nullptr ? "missing" : printable(value_->dump()),
           "; ", what),
       hint.empty() ? source_->hint : hint);
}

}  // namespace tokamak
