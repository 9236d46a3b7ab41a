#include "eval/text_template.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/strings.h"
#include "eval/python_text.h"

namespace tokamak {

namespace {

using Cut = std::string_view (*)(std::string_view text, size_t at, size_t length);

std::string_view text_before(std::string_view text, size_t at, size_t) { return text.substr(0, at); }
std::string_view text_after(std::string_view text, size_t at, size_t length) { return text.substr(at + length); }

enum class Which { kFirst, kLast };
struct CutFilter {
  std::string_view name;
  Which which;
  Cut cut;
};
constexpr CutFilter kCuts[] = {{"before", Which::kFirst, text_before},
                               {"after", Which::kFirst, text_after},
                               {"before_last", Which::kLast, text_before},
                               {"after_last", Which::kLast, text_after}};

struct PlainFilter {
  std::string_view name;
  std::string (*apply)(std::string_view text);
};
constexpr PlainFilter kFilters[] = {
    {"strip", [](std::string_view text) { return std::string(python_strip(text)); }},
    {"lstrip", [](std::string_view text) { return std::string(python_lstrip(text)); }},
    {"rstrip", [](std::string_view text) { return std::string(python_rstrip(text)); }},
    {"capitalize", [](std::string_view text) { return python_capitalize(text); }},
    {"spaces", [](std::string_view text) { return replace_all(text, "_", " "); }},
};

template <class Filters>
auto find_filter(const Filters& filters, std::string_view name) {
  const auto found =
      std::find_if(std::begin(filters), std::end(filters), [&](const auto& filter) { return filter.name == name; });
  return found == std::end(filters) ? nullptr : &*found;
}

// The member or item that one part of a path names.
JsonValue step(const JsonValue& value, const std::string& name) {
  if (!value.is_list()) return value[name];
  size_t at = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), at);
  const std::vector<JsonValue> items = value.items();
  if (error != std::errc() || end != name.data() + name.size()) value.refuse("expected an object");
  if (at >= items.size()) value.refuse(str("expected at least ", at + 1, " items"));
  return items[at];
}

JsonValue member(const JsonValue& record, const std::vector<std::string>& path) {
  JsonValue value = record;
  for (const std::string& name : path) value = step(value, name);
  return value;
}

std::string text_of(const JsonValue& value) { return value.is_whole() ? str(value.whole(INT64_MIN)) : value.text(); }

}  // namespace

struct TextTemplate::Parsed {
  std::vector<Part> parts;
  std::string problem;
};

TextTemplate::Parsed TextTemplate::parse(std::string_view text) {
  Parsed parsed{{Part{}}, ""};
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      parsed.parts.back().before += c;
    } else if (at + 1 < text.size() && text[at + 1] == c) {
      parsed.parts.back().before += c;
      ++at;
    } else {
      const size_t end = text.find('}', at);
      if (c == '}' || end == std::string_view::npos) return {{}, str("has a '", c, "' without its other half")};
      Part& part = parsed.parts.back();
      std::vector<std::string> words = split(text.substr(at + 1, end - at - 1), '|');
      if (words[0].empty()) return {{}, "has {} without a member"};
      part.path = split(words[0], '.');
      for (size_t i = 1; i < words.size(); ++i) {
        const size_t colon = std::min(words[i].find(':'), words[i].size());
        const std::string name = words[i].substr(0, colon);
        const std::string argument = colon < words[i].size() ? words[i].substr(colon + 1) : "";
        const bool cuts = find_filter(kCuts, name) != nullptr;
        if (!cuts && find_filter(kFilters, name) == nullptr) return {{}, str("has no filter '", name, "'")};
        if (cuts == argument.empty()) {
          return {{}, str("has the filter '", name, cuts ? "' without its text" : "' with a text")};
        }
        part.filters.push_back({name, argument});
      }
      parsed.parts.emplace_back();
      at = end;
    }
  }
  return parsed;
}

std::string TextTemplate::problem_of(std::string_view text) { return parse(text).problem; }

TextTemplate::TextTemplate(std::string_view text) {
  Parsed parsed = parse(text);
  TOKAMAK_CHECK(parsed.problem.empty(), "'", text, "' ", parsed.problem);
  parts_ = std::move(parsed.parts);
}

std::string TextTemplate::filtered(const Part& part, const JsonValue& value, std::string text) {
  for (const Filter& filter : part.filters) {
    if (const PlainFilter* plain = find_filter(kFilters, filter.name)) {
      text = plain->apply(text);
      continue;
    }
    const CutFilter& cut = *find_filter(kCuts, filter.name);
    const size_t at = cut.which == Which::kFirst ? text.find(filter.argument) : text.rfind(filter.argument);
    if (at == std::string::npos) value.refuse(str("expected a text with \"", filter.argument, "\""));
    text = cut.cut(text, at, filter.argument.size());
  }
  return text;
}

std::string TextTemplate::text(const JsonValue& record, std::string_view choice) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.before;
    if (part.path.empty()) continue;
    if (part.path[0] == "choice" && part.path.size() == 1) {
      out += filtered(part, record, std::string(choice));
    } else {
      const JsonValue value = member(record, part.path);
      out += filtered(part, value, text_of(value));
    }
  }
  return out;
}

std::vector<std::string> TextTemplate::texts(const JsonValue& record) const {
  const bool one_member = parts_.size() == 2 && parts_[0].before.empty() && parts_[1].before.empty();
  if (!one_member) return {text(record)};
  const JsonValue value = member(record, parts_[0].path);
  if (!value.is_list()) return {text(record)};
  std::vector<std::string> out;
  for (const JsonValue& item : value.items()) out.push_back(filtered(parts_[0], item, text_of(item)));
  return out;
}

}  // namespace tokamak
