#include "tokenizer/scan/pattern_parser.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/scan/char_set.h"
#include "tokenizer/scan/pattern_reader.h"
#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

namespace {

constexpr size_t kMaxPattern = 64 << 10;

constexpr int kMaxRepeats = 1000;

// Text for PCRE2, or a set that has yet to be written as classes.
struct Part {
  std::string text;
  int set = -1;
};

class Parser : PatternReader {
 public:
  explicit Parser(std::string_view pattern) : PatternReader(pattern) {
    if (pattern.size() > kMaxPattern) refuse("more than 64 KiB");
    if (!is_valid_utf8(pattern)) refuse("invalid UTF-8");
  }

  ClassPattern parse() {
    ClassPattern result;
    result.can_be_empty = alternatives(false, 0);
    if (!at_end()) refuse("an unmatched )");
    write(result);
    return result;
  }

 private:
  void text(std::string_view text) { parts_.push_back({std::string(text)}); }
  void set(const CharSet& set) {
    if (set.empty()) refuse("a class without characters");
    auto found = std::find(sets_.begin(), sets_.end(), set);
    if (found == sets_.end()) found = sets_.insert(sets_.end(), set);
    if (sets_.size() > 500) refuse("more than 500 different classes");
    parts_.push_back({"", static_cast<int>(found - sets_.begin())});
  }

  // Each of the next four returns whether it can match the empty string.
  bool alternatives(bool ignore_case, int depth) {
    if (depth > kMaxPatternDepth) refuse("groups more than 100 deep");
    bool empty = sequence(ignore_case, depth);
    while (take("|")) {
      text("|");
      empty |= sequence(ignore_case, depth);
    }
    return empty;
  }

  bool sequence(bool ignore_case, int depth) {
    bool empty = true;
    previous_ = 0;
    const size_t start = at_;
    while (!at_end() && !sees("|") && !sees(")")) {
      if (take("(?i)")) {
        // In the middle, Oniguruma lets it cover the alternatives that follow too.
        if (at_ - 4 != start) refuse("(?i) in the middle");
        text("(?:");
        const bool rest = alternatives(true, depth + 1);
        text(")");
        return rest;
      }
      empty &= quantified(ignore_case, depth);
    }
    return empty;
  }

  bool group(std::string_view opening, bool ignore_case, int depth) {
    text(opening);
    const bool empty = alternatives(ignore_case, depth + 1);
    if (!take(")")) refuse("an unclosed (");
    text(")");
    previous_ = 0;
    return empty;
  }

  bool quantified(bool ignore_case, int depth) {
    const size_t first = parts_.size();
    bool can_repeat = true;
    const bool empty = atom(ignore_case, depth, can_repeat);
    const size_t here = at_;
    int least = 0;
    int most = -1;
    bool interval = false;
    if (take("?")) {
      most = 1;
      text("?");
    } else if (take("*")) {
      text("*");
    } else if (take("+")) {
      least = 1;
      text("+");
    } else if (take("{")) {
      interval = true;
      read_interval(least, most);
      text(least == most ? str("{", least, "}") : most < 0 ? str("{", least, ",}") : str("{", least, ",", most, "}"));
    } else {
      return empty;
    }
    if (!can_repeat) refuse(str("a repeated ", pattern_.substr(here - 1, 1), " that matches no character"));
    if (empty) refuse("a repeated group that can match nothing");
    bool can_match_nothing = least == 0;
    if (interval && (sees("+") || (sees("?") && least == most))) {
      // Possessive and lazy intervals are a second repetition in Oniguruma: x{2}? is (?:x{2})?.
      if (least == 0) refuse("a repeated group that can match nothing");
      parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(first), {"(?:"});
      can_match_nothing = sees("?");
      text(take("+") ? ")+" : (take("?"), ")?"));
    } else if (take("+")) {
      text("+");
    } else if (take("?")) {
      text("?");
    }
    if (sees("?") || sees("*") || sees("+") || sees("{")) refuse("two repetitions in a row");
    return can_match_nothing;
  }

  void read_interval(int& least, int& most) {
    const auto number = [&]() -> std::optional<int> {
      const size_t start = at_;
      int value = 0;
      while (!at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
        value = value * 10 + (pattern_[at_++] - '0');
        if (value > kMaxRepeats) refuse("more than 1000 repetitions");
      }
      return at_ == start ? std::nullopt : std::optional(value);
    };
    const std::optional<int> low = number();
    const bool comma = take(",");
    const std::optional<int> high = comma ? number() : low;
    if ((!low && !high) || !take("}")) refuse("a { that begins no repetition");
    least = low.value_or(0);
    most = high.value_or(-1);
    if (most >= 0 && (most < least || most == 0)) refuse("a repetition of no times or with its limits exchanged");
  }

  bool atom(bool ignore_case, int depth, bool& can_repeat) {
    if (take("(")) {
      if (take("?:")) return group("(?:", ignore_case, depth);
      if (take("?i:")) return group("(?:", true, depth);
      if (take("?>")) return group("(?>", ignore_case, depth);
      for (const std::string_view look : {"?=", "?!", "?<=", "?<!"}) {
        if (!take(look)) continue;
        can_repeat = false;
        group(str("(", look), ignore_case, depth);
        return true;
      }
      if (sees("?") || sees("*")) refuse(str("the group (", printable(pattern_.substr(at_, 3))));
      return group("(?:", ignore_case, depth);
    }
    if (const std::string_view anchor = take_anchor(); !anchor.empty()) {
      can_repeat = false;
      const CharSet newline = CharSet::one('\n');
      if (anchor == "^") text("(?:\\A|(?<="), set(newline), text(")(?!\\z))");
      if (anchor == "$") text("(?:\\z|(?="), set(newline), text("))");
      if (anchor == "\\Z") text("(?="), set(newline), text("?\\z)");
      if (anchor == "\\A" || anchor == "\\z") text(anchor);
      return true;
    }
    character(ignore_case);
    return false;
  }

  std::string_view take_anchor() {
    for (const std::string_view anchor : {"^", "$", "\\Z", "\\A", "\\z"})
      if (take(anchor)) return previous_ = 0, anchor;
    return "";
  }

  // A set or one character.
  void character(bool ignore_case) {
    if (take("[")) {
      previous_ = 0;
      return set(bracket(ignore_case, 0));
    }
    if (take(".")) {
      previous_ = 0;
      return set(CharSet::one('\n').complement());
    }
    for (const std::string_view special : {"*", "+", "?", "{", "}", "]"})
      if (sees(special)) refuse(str("an unescaped ", special));
    const std::optional<CharSet> escaped = sees("\\") ? escaped_set() : std::nullopt;
    if (escaped) {
      previous_ = 0;
      if (ignore_case && !folds_simply(*escaped)) refuse("(?i) with this property");
      return set(*escaped);
    }
    const uint32_t code = sees("\\") ? escaped_char() : take_char();
    if (!ignore_case) return set(CharSet::one(code));
    const CharSet one = CharSet::one(code);
    if (!folds_simply(one)) refuse("(?i) with a character outside ASCII that may have cases");
    // Oniguruma folds these pairs to single characters, such as U+00DF.
    const uint32_t lower = (code | 32) >= 'a' && (code | 32) <= 'z' ? code | 32 : 0;
    for (const std::string_view pair : {"ff", "fi", "fl", "ss", "st"})
      if (previous_ == static_cast<uint32_t>(pair[0]) && lower == static_cast<uint32_t>(pair[1]))
        refuse(str("(?i) with the letters ", pair));
    previous_ = lower;
    set(folded(one));
  }

  // Numbers the classes: code points in the same sets are one class, numbered in the order of appearance. Then writes
  // each set as its classes.
  void write(ClassPattern& result) const {
    std::vector<uint32_t> borders = {0};
    for (const CharSet& s : sets_) borders.insert(borders.end(), s.borders().begin(), s.borders().end());
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    if (borders.back() == kCodePoints) borders.pop_back();
    std::map<std::vector<bool>, uint32_t> classes;
    for (const uint32_t border : borders) {
      std::vector<bool> in;
      for (const CharSet& s : sets_) in.push_back(s.contains(border));
      const uint32_t number = classes.emplace(std::move(in), static_cast<uint32_t>(classes.size())).first->second;
      if (number > 255) refuse("more than 256 classes of characters");
      if (result.runs.empty() || (result.runs.back() & 255) != number) result.runs.push_back(border << 8 | number);
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    for (const Part& part : parts_) {
      result.regex += part.text;
      if (part.set < 0) continue;
      std::string members;
      for (const auto& [in, number] : classes)
        if (in[static_cast<size_t>(part.set)]) members += str("\\x", kHex[number >> 4], kHex[number & 15]);
      result.regex += members.size() == 4 ? members : str("[", members, "]");
    }
  }

  uint32_t previous_ = 0;  // the letter before, in lower case, if it is a literal under (?i)
  std::vector<CharSet> sets_;
  std::vector<Part> parts_;
};

}  // namespace

ClassPattern parse_pattern(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace tokamak
