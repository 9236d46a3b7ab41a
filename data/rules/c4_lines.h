// C4's cleaning of lines (arXiv 1910.10683, section 2.2), as datatrove does it: lines that are no sentences go, and so
// does a text that has too few left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/rules/words.h"

namespace tokamak {

struct C4Options {
  bool terminal_marks = true;
  int64_t sentences = 5;
  int64_t words = 3;
  int64_t word_length = 1000;

  template <class Visitor>
  void fields(Visitor& v) {
    v("terminal_marks", terminal_marks,
      "keep only lines that end in . ? ! or a quotation mark; FineWeb does not ask for it");
    v("sentences", sentences, "drop a text with fewer sentences in its lines that are kept; more drops short texts");
    v("words", words, "drop lines of fewer words: menus and buttons");
    v("word_length", word_length, "drop lines with a longer word, in characters: code and encoded data");
  }
};

enum class C4Verdict { kKept, kLoremIpsum, kCurlyBracket, kFewSentences };
std::string_view c4_verdict_name(C4Verdict verdict);  // "few_sentences"

class C4Lines {
 public:
  C4Lines(const C4Options& options, WordRules rules) : options_(options), splitter_(rules) {}

  // Sets `cleaned` to the lines of `text` (valid UTF-8) that are kept, if the text is.
  C4Verdict clean(std::string_view text, std::string& cleaned);

 private:
  int64_t sentences_of(std::string_view line);

  C4Options options_;
  WordSplitter splitter_;
  std::vector<std::string_view> words_;
  std::string line_;
};

bool contains_word(std::string_view text, std::string_view lower_case);  // in any case of ASCII
bool has_policy_phrase(std::string_view text);                           // "privacy policy", "use cookies" and the like

}  // namespace tokamak
