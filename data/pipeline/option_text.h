// Options as text: equal texts, equal options. For identities, not for people.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/fields.h"
#include "base/strings.h"

namespace tokamak {

class OptionText {
 public:
  template <class T>
  void operator()(const char* name, T& value, const char* /*help*/) {
    text_ += str(name, "=");
    add(value);
    text_ += "\n";
  }
  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& value) { text_ += str(value.size(), ":", value); }
  void add(double value) { text_ += hex_of(value); }
  void add(int64_t value) { text_ += str(value); }
  void add(bool value) { text_ += value ? "true" : "false"; }
  void add(AutoNumber value) { add(value.value); }
  template <class T>
  requires std::is_enum_v<T>
  void add(T value) { text_ += enum_name(value); }
  template <class T>
  void add(std::vector<T>& values) {
    for (T& value : values) add(value);
  }
  template <class T>
  requires requires(T options, OptionText& text) { options.fields(text); }
  void add(T& options) { options.fields(*this); }

  static std::string hex_of(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%a", value);
    return text;
  }

  std::string text_;
};

template <class Options>
std::string option_text(Options options) {
  OptionText text;
  options.fields(text);
  return text.take();
}

}  // namespace tokamak
