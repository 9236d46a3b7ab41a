// One piece at a time, character by character: the reference for the scanners that use vectors.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/utf8.h"
#include "tokenizer/scan/family.h"

namespace tokamak {

// A character of the text, or the end of the piece that the text is for the pattern.
struct Seen {
  unsigned flags = 0;
  unsigned char byte = 0;  // its first byte; 0 at the end
  unsigned length = 0;     // in bytes; 0 at the end

  bool has(unsigned some) const { return (flags & some) != 0; }
  bool exists() const { return length != 0; }
  bool other() const { return exists() && is_other(flags); }
  bool blank() const { return (flags & (kSpaceFlag | kNewline)) == kSpaceFlag; }
};

template <Family kFamily>
class ScalarScan {
 public:
  ScalarScan(std::string_view text, const CharMap& classes) : text_(text), classes_(classes) {}

  // The end of the piece that begins at `at`, which is less than the text's size.
  size_t piece_end(size_t at) {
    Seen c = any(at);
    if constexpr (kFamily.numbers_are_borders) {
      region_ = region(c.flags);
      if (c.has(kNumber)) return number(at, kFamily.digits);
    }
    if constexpr (kFamily.contractions == Contractions::kLowerCase || kFamily.contractions == Contractions::kAnyCase)
      if (const size_t end = contraction(at); end != at) return end;
    if constexpr (kFamily.words == Words::kGpt2) {
      const size_t first = c.byte == ' ' ? at + 1 : at;
      const Seen start = first == at ? c : look(first);
      if (start.has(kLetter)) return run(first, [](Seen s) { return s.has(kLetter); });
      if (start.has(kNumber)) return run(first, [](Seen s) { return s.has(kNumber); });
      if (start.other()) return run(first, [](Seen s) { return s.other(); });
      return white_space(at);
    } else {
      if constexpr (kFamily.words == Words::kDeepSeek) {
        if (is_ascii_punctuation(c) && is_ascii_letter(look(at + 1)))
          return run(at + 1, [](Seen s) { return is_ascii_letter(s); });
      }
      if (const size_t end = word(at, c); end != at) return end;
      if (c.has(kNumber)) return number(at, kFamily.digits);
      const size_t first = c.byte == ' ' ? at + 1 : at;
      if (punctuation(first == at ? c : look(first))) return tail(run(first, punctuation));
      if (c.has(kSpaceFlag)) return white_space(at);
      return gap(at);
    }
  }

 private:
  static unsigned region(unsigned flags) {
    if (flags & kNumber) return kNumber;
    return kFamily.words == Words::kDeepSeek ? flags & kCjk : 0;
  }
  static bool is_ascii_letter(Seen s) { return s.byte < 0x80 && s.has(kLetter); }
  static bool is_ascii_punctuation(Seen s) { return s.byte < 0x80 && s.has(kPunctuation); }
  static bool punctuation(Seen s) {
    if (kFamily.words == Words::kDeepSeek) return s.has(kPunctuation);
    return s.other() && !(kFamily.words == Words::kMarks && is_mark(s.flags));
  }
  static bool in_word(Seen s) { return s.has(kLetter) || (kFamily.words != Words::kLetters && is_mark(s.flags)); }
  static bool prefix(Seen s) {
    if (kFamily.words == Words::kDeepSeek) return s.exists() && !s.has(kNewline | kLetter | kPunctuation);
    return s.exists() && !s.has(kNewline | kLetter | kNumber);
  }

  Seen any(size_t at) const {
    if (at >= text_.size()) return {};
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {classes_[byte], byte, 1};
    const Utf8Char c = decode_valid_utf8(text_.data() + at);
    return {classes_[c.code], byte, static_cast<unsigned>(c.length)};
  }
  Seen look(size_t at) const {
    const Seen seen = any(at);
    if (kFamily.numbers_are_borders && region(seen.flags) != region_) return {};
    return seen;
  }

  template <class Is>
  size_t run(size_t at, Is is) const {
    for (Seen c = look(at); c.exists() && is(c); c = look(at)) at += c.length;
    return at;
  }

  size_t number(size_t at, int most) const {
    for (int count = 0; most == 0 || count < most; ++count) {
      const Seen c = look(at);
      if (!c.has(kNumber)) break;
      at += c.length;
    }
    return at;
  }

  // The end of `'s` and the like; `at` if there is none.
  size_t contraction(size_t at) const {
    if (text_[at] != '\'' || at + 1 == text_.size()) return at;
    const auto letter = [&](size_t i) {
      if (i >= text_.size()) return '\0';
      const char c = text_[i];
      return kFamily.contractions == Contractions::kLowerCase || c < 'A' || c > 'Z' ? c : static_cast<char>(c | 32);
    };
    const char a = letter(at + 1);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    const char b = letter(at + 2);
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    // (?i:s) is U+017F too.
    if (kFamily.contractions != Contractions::kLowerCase && a == '\xC5' && b == '\xBF') return at + 3;
    return at;
  }

  // The end of a word with the character before it that it may take; `at` if there is none.
  size_t word(size_t at, Seen c) const {
    if constexpr (kFamily.words == Words::kCased) return cased_word(at, c);
    if (in_word(c)) return run(at + c.length, in_word);
    if (!prefix(c) || !in_word(look(at + c.length))) return at;
    return run(at + c.length, in_word);
  }

  // `Upper*Lower+` gives back what it took too much; `Upper+Lower*` is second.
  size_t cased_word(size_t at, Seen c) const {
    if (c.has(kLetter)) {
      const Cased found = cased(at);
      return after_word(found.lower != at ? found.lower : found.upper);
    }
    if (!prefix(c)) return at;
    const size_t first = at + c.length;
    const Cased found = cased(first);
    if (found.lower != first) return after_word(found.lower);
    if (is_mark(c.flags)) return after_word(cased(at).lower);
    return found.upper != first ? after_word(found.upper) : at;
  }

  struct Cased {
    size_t lower;  // the end of `Upper*Lower+`, or `at`
    size_t upper;  // the end of `Upper*`
  };
  Cased cased(size_t at) const {
    size_t end = at, both = at;
    Seen c = look(at);
    for (; c.has(kUpperClass); c = look(end)) {
      end += c.length;
      if (c.has(kLowerClass)) both = end;
    }
    if (c.has(kLowerClass)) return {run(end, [](Seen s) { return s.has(kLowerClass); }), end};
    return {both, end};
  }
  size_t after_word(size_t at) const {
    if (kFamily.contractions != Contractions::kAfterWord || at == text_.size()) return at;
    return contraction(at);
  }

  size_t tail(size_t at) const {
    if (kFamily.tail == Tail::kNewlines) return run(at, [](Seen s) { return s.has(kNewline); });
    return run(at, [](Seen s) { return s.has(kNewline) || s.byte == '/'; });
  }

  // `at` is white space, and no alternative before took it.
  size_t white_space(size_t at) const {
    size_t end = at, before_last = at, after_newline = at;
    for (Seen c = look(at); c.has(kSpaceFlag); c = look(end)) {
      before_last = end;
      end += c.length;
      if (c.has(kNewline)) after_newline = end;
    }
    const bool final = !look(end).exists();
    if (final && kFamily.final_space_first) return end;
    if (kFamily.words != Words::kGpt2 && after_newline != at) return after_newline;
    return final || before_last == at ? end : before_last;
  }

  // Characters that no alternative of DeepSeek's matches, up to one that begins a match.
  size_t gap(size_t at) const {
    Seen c = look(at);
    do {
      at += c.length;
      c = look(at);
    } while (c.exists() && !c.has(kSpaceFlag) && !punctuation(c) && !in_word(c) && !in_word(look(at + c.length)));
    return at;
  }

  std::string_view text_;
  const CharMap& classes_;
  unsigned region_ = 0;
};

}  // namespace tokamak
