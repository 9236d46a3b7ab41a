// Reads JSON from front to back without building a tree, for the members of a tokenizer's file that hold hundreds of
// thousands of values. The rest of a file goes through formats/json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

// Errors are of Kind::kData and name `source` and the byte's offset. `text` is valid UTF-8 and outlives the cursor.
class JsonCursor {
 public:
  JsonCursor(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  char peek();          // the next character that is no white space; NUL at the end
  void expect(char c);  // takes it
  bool take(char c);    // takes it if it is the next one
  // A list or an object: `while (next_item(first, ']'))` after expect('['). Takes the commas.
  bool next_item(bool& first, char end);

  // An object: calls visit(name, as written with its colon) at the value of each member, which `visit` must take.
  template <class Visit>
  void members(const Visit& visit) {
    std::string buffer;
    expect('{');
    for (bool first = true; next_item(first, '}');) {
      peek();
      const size_t begin = at_;
      const std::string_view name = string(buffer);
      expect(':');
      visit(name, text_.substr(begin, at_ - begin));
    }
  }

  // A string's text: a view of the file, or of `buffer` where the string has escapes.
  std::string_view string(std::string& buffer);
  int64_t whole(int64_t most);   // from 0
  std::string_view raw_value();  // any value as it is written; nested at most 16 deep, and not checked further
  size_t offset() const { return at_; }
  void skip_to(size_t offset) { at_ = offset; }
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  void skip_string();
  char32_t hex4();
  void append_escape(std::string& buffer);

  std::string_view text_;
  std::string_view source_;
  size_t at_ = 0;
};

}  // namespace tokamak
