// A text with members of a JSON record in it, such as "Question: {question|strip}\nAnswer:".
//   {name}          a text, or a whole number as digits
//   {a.b}, {a.0}    a member of a member; an item of a list
//   {name|f|g}      filtered, from left to right: strip, lstrip, rstrip, capitalize, spaces (of underscores), and
//                   before:X, after:X, before_last:X, after_last:X: up to or from the first or last X
//   {choice}        what the caller gives under this name
//   {{, }}          braces
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"

namespace tokamak {

class TextTemplate {
 public:
  TextTemplate() = default;
  explicit TextTemplate(std::string_view text);  // without a problem

  // The problem of a template, such as "has no filter 'upper'"; empty: none.
  static std::string problem_of(std::string_view text);

  // Error(kData) naming the record and its member if there is no such text.
  std::string text(const JsonValue& record, std::string_view choice = "") const;
  // A template that is one member, a list: the text of each item. Another one: one text.
  std::vector<std::string> texts(const JsonValue& record) const;

 private:
  struct Filter {
    std::string name, argument;
  };
  struct Part {
    std::string before;             // text before the member
    std::vector<std::string> path;  // of the member; empty: none, at the end
    std::vector<Filter> filters;
  };
  struct Parsed;
  static Parsed parse(std::string_view text);
  static std::string filtered(const Part& part, const JsonValue& value, std::string text);

  std::vector<Part> parts_;
};

}  // namespace tokamak
