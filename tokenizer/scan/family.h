// The families of patterns that have a scanner written by hand, as data. The scanners are templates over it.
#pragma once

#include "tokenizer/scan/char_classes.h"

namespace tokamak {

enum class Words {
  kGpt2,      // ` ?\p{L}+`
  kLetters,   // `[^\r\n\p{L}\p{N}]?\p{L}+`
  kMarks,     // `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`, and marks are no punctuation
  kCased,     // o200k: a word is `Upper*Lower+` or `Upper+Lower*`
  kDeepSeek,  // the third split of DeepSeek V3
};
enum class Contractions { kNone, kLowerCase, kAnyCase, kAfterWord };
enum class Tail { kNone, kNewlines, kNewlinesAndSlashes };  // what a run of punctuation takes with it

struct Family {
  Words words;
  Contractions contractions;
  int digits;  // of a number, at most; 0 is any number. GPT-2 has ` ?\p{N}+`
  Tail tail = Tail::kNewlines;
  bool final_space_first = false;    // `\s++$` comes before `\s*[\r\n]`
  bool numbers_are_borders = false;  // each digit is a piece, and the text between is cut by itself
};

constexpr Family kGpt2Family{Words::kGpt2, Contractions::kLowerCase, 0, Tail::kNone};
constexpr Family kDigitsGpt2Family{Words::kGpt2, Contractions::kLowerCase, 1, Tail::kNone, false, true};
constexpr Family kLlama3Family{Words::kLetters, Contractions::kAnyCase, 3};
constexpr Family kCl100kFamily{Words::kLetters, Contractions::kAnyCase, 3, Tail::kNewlines, true};
constexpr Family kCl100kAnyDigitsFamily{Words::kLetters, Contractions::kAnyCase, 0, Tail::kNewlines, true};
constexpr Family kQwen2Family{Words::kLetters, Contractions::kAnyCase, 1};
constexpr Family kQwen35Family{Words::kMarks, Contractions::kAnyCase, 1};
constexpr Family kO200kFamily{Words::kCased, Contractions::kAfterWord, 3, Tail::kNewlinesAndSlashes};
constexpr Family kTekkenFamily{Words::kCased, Contractions::kNone, 1, Tail::kNewlinesAndSlashes};
constexpr Family kDeepSeekFamily{Words::kDeepSeek, Contractions::kNone, 3, Tail::kNewlines, false, true};

}  // namespace tokamak
