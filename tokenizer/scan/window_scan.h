// The borders of the pieces of a window, all at once. Equal to ScalarScan, which decides what a window cannot.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tokenizer/scan/family.h"
#include "tokenizer/scan/window.h"

namespace tokamak {

inline uint64_t bits_through(int i) { return i >= 63 ? ~uint64_t{0} : (uint64_t{2} << i) - 1; }

// The length of `'s` and the like at an apostrophe, from the bytes of the characters; 0 if there is none.
template <Contractions kKind>
int contraction_length(const unsigned char* p) {
  const auto letter = [&](int i) {
    const unsigned char c = p[i];
    return kKind != Contractions::kLowerCase && c >= 'A' && c <= 'Z' ? c | 32 : c;
  };
  const int a = letter(1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  const int b = letter(2);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return kKind != Contractions::kLowerCase && a == kLongS ? 2 : 0;
}

// Bit i: a piece begins at character i. Bits after `trusted` depend on what follows the window.
struct Starts {
  uint64_t bits;
  int trusted;
};

// From `at` on, through the run of ones of `in` that it is in: a carry runs through the ones.
inline uint64_t fill(uint64_t at, uint64_t in) { return (((at + in) ^ in) & in) | at; }

// The last character of a run of white space at the end of the window may belong to what follows.
inline int trusted_by_white(const Window& w) {
  if (w.final) return w.size - 1;
  return w.size - std::countl_one(w.white << (kWindow - w.size));
}

// The character after the last newline of each run of white space, if it is in the run. `white` and `newline` leave out
// those that punctuation has taken.
inline uint64_t after_last_newlines(uint64_t white, uint64_t newline) {
  const uint64_t blank = white & ~newline;
  uint64_t after = (newline << 1) & blank;
  if (((newline >> 1) & blank) == 0) return after;
  uint64_t ends = (after + blank) & ~blank & newline;  // a newline follows these blanks
  for (; ends != 0; ends &= ends - 1) after &= ~std::bit_floor(after & ((ends & (0 - ends)) - 1));
  return after;
}

// The beginning of each number, and of every third digit after it.
inline uint64_t triples(uint64_t number) {
  uint64_t starts = number & ~(number << 1);
  const uint64_t fourth = number & (number << 1) & (number << 2);
  for (uint64_t next = starts; (next = (next << 3) & fourth) != 0;) starts |= next;
  return starts;
}

template <Family kFamily>
Starts starts_of_gpt2(const Window& w) {
  const uint64_t other = w.known() & ~(w.letter | w.number | w.white);
  const auto begins = [](uint64_t run) { return run & ~(run << 1); };
  const uint64_t joined = w.space << 1;
  uint64_t last = w.white & ~(w.white >> 1);
  if (kFamily.numbers_are_borders) last &= ~(w.number >> 1);
  if (w.final) last &= ~(uint64_t{1} << (w.size - 1));
  const uint64_t numbers = kFamily.numbers_are_borders ? w.number : begins(w.number) & ~joined;
  uint64_t starts = ((begins(w.letter) | begins(other)) & ~joined) | numbers | begins(w.white) | last | 1;
  int trusted = trusted_by_white(w);
  for (uint64_t rest = w.apostrophe & starts & (w.letter >> 1 | uint64_t{1} << 63); rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    if (i + 2 >= w.size && !w.final) {
      trusted = std::min(trusted, i);
      break;
    }
    const int length = contraction_length<kFamily.contractions>(w.bytes + i);
    if (length == 0) continue;
    starts &= ~(uint64_t{1} << (i + 1));  // of the letters
    if (i + length < w.size) starts |= uint64_t{1} << (i + length);
  }
  return {starts, trusted};
}

template <Family kFamily>
Starts starts_of_words(const Window& w) {
  constexpr bool kCased = kFamily.words == Words::kCased;
  constexpr bool kMarks = kFamily.words != Words::kLetters;
  const auto begins = [](uint64_t run) { return run & ~(run << 1); };
  const uint64_t word = kMarks ? w.letter | w.mark : w.letter;
  uint64_t other = w.known() & ~(word | w.number | w.white);
  int trusted = trusted_by_white(w);

  // Newlines (and slashes) after punctuation belong to it.
  const uint64_t first_taken = w.newline & (other << 1);
  const uint64_t taken = fill(first_taken, kFamily.tail == Tail::kNewlines ? w.newline : w.newline | w.slash);
  other &= ~taken;
  const uint64_t white = w.white & ~taken;
  const uint64_t newline = w.newline & ~taken;
  const uint64_t blank = white & ~newline;

  // A piece ends after the last newline of a run of white space.
  uint64_t after_newline = after_last_newlines(white, newline);
  // The last blank of a run goes with what follows, or is a piece.
  uint64_t last = blank & ~(white >> 1);
  if (w.final) {
    last &= ~(uint64_t{1} << (w.size - 1));
    if (kFamily.final_space_first && (white >> (w.size - 1)) != 0) {
      const int run = std::countl_one(white << (kWindow - w.size));
      after_newline &= bits_through(w.size - run);
    }
  }

  const uint64_t other_begins = begins(other) & ~(w.space << 1);
  const uint64_t prefix = other_begins & (word >> 1);
  const uint64_t numbers = kFamily.digits == 1 ? w.number : kFamily.digits == 3 ? triples(w.number) : begins(w.number);
  uint64_t starts = (begins(word) & ~(blank << 1) & ~(prefix << 1)) | other_begins | numbers | begins(white) |
                    after_newline | last | 1;

  if constexpr (kCased) {
    starts |= w.upper & (w.lower << 1);
    // After a letter without case or a mark, case decides only at the end of the word. A mark after punctuation is
    // part of a word, or of the punctuation.
    const uint64_t uncased = word & ~w.upper & ~w.lower;
    const uint64_t unclear = (w.upper & (uncased << 1)) | (w.mark & (other << 1));
    if (unclear != 0) trusted = std::min(trusted, std::countr_zero(unclear) - 1);
  }

  if constexpr (kFamily.contractions != Contractions::kNone) {
    constexpr bool kAfter = kFamily.contractions == Contractions::kAfterWord;
    uint64_t rest = w.apostrophe & (w.letter >> 1 | uint64_t{1} << (w.size - 1));
    rest &= kAfter ? word << 1 : starts;
    int end = 0;  // of the last contraction
    for (; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (i + 2 >= w.size && !w.final) {
        trusted = std::min(trusted, kAfter ? i - 1 : i);
        break;
      }
      if (kAfter && i == end) continue;
      const int length = contraction_length<kFamily.contractions>(w.bytes + i);
      if (length == 0) continue;
      end = i + length;
      if (kAfter) starts &= ~(((uint64_t{1} << length) - 1) << i);
      if (end < w.size) starts |= uint64_t{1} << end;
    }
  }
  return {starts, trusted};
}

// Numbers and CJK runs are regions, which the third split cuts by themselves.
inline Starts starts_of_deepseek(const Window& w) {
  const uint64_t word = w.letter | w.mark;
  const uint64_t cjk = w.cjk & ~w.number;
  const uint64_t regions = ((w.number ^ (w.number << 1)) | (cjk ^ (cjk << 1))) & w.known();  // where one begins
  const auto after = [&](uint64_t mask) { return (mask << 1) & ~regions; };                  // in the same region
  const auto before = [&](uint64_t mask) { return (mask & ~regions) >> 1; };                 // in the same region
  const auto begins = [&](uint64_t run) { return run & ~after(run); };
  const uint64_t gap = w.known() & ~(word | w.punctuation | w.white | w.number);

  const uint64_t taken = fill(w.newline & after(w.punctuation), w.newline);
  const uint64_t white = w.white & ~taken;
  const uint64_t newline = w.newline & ~taken;
  const uint64_t blank = white & ~newline;
  uint64_t last = blank & ~(white >> 1) & ~(regions >> 1);
  if (w.final) last &= ~(uint64_t{1} << (w.size - 1));

  // ASCII punctuation takes ASCII letters only; other letters after them are another word.
  const uint64_t ascii_letter = w.letter & w.ascii;
  const uint64_t punctuation = begins(w.punctuation) & ~after(w.space);
  const uint64_t prefix = punctuation & w.ascii & before(ascii_letter);
  const uint64_t after_prefix = fill(after(prefix), ascii_letter) & ascii_letter;
  const uint64_t second_word = after(after_prefix) & word & ~ascii_letter;

  const uint64_t words = begins(word) & ~after(blank | gap | prefix);
  const uint64_t starts = words | second_word | punctuation | begins(gap) | (gap & before(word)) | triples(w.number) |
                          begins(white) | after_last_newlines(white, newline) | last | regions | 1;
  int trusted = trusted_by_white(w);
  if (!w.final && (gap >> (w.size - 1)) != 0) trusted = std::min(trusted, w.size - 2);
  return {starts, trusted};
}

template <Family kFamily>
Starts starts_of(const Window& w) {
  if constexpr (kFamily.words == Words::kDeepSeek) return starts_of_deepseek(w);
  if constexpr (kFamily.words == Words::kGpt2)
    return starts_of_gpt2<kFamily>(w);
  else
    return starts_of_words<kFamily>(w);
}

}  // namespace tokamak
