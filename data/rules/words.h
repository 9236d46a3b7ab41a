// Text -> words, by the general rules of spaCy's tokenizer, which datatrove uses. White space ends a word. Punctuation
// at either end is a word of its own. So are units after a number, "'s", and marks such as a hyphen between letters.
// Addresses stay whole. The exceptions to these rules are in word_exceptions.h.
#pragma once

#include <string_view>
#include <vector>

#include "data/rules/word_classes.h"
#include "data/rules/word_exceptions.h"

namespace tokamak {

class WordSplitter {
 public:
  explicit WordSplitter(WordRules rules);

  // Replaces `words` by those of `text`, which is valid UTF-8 and outlives them.
  void split(std::string_view text, std::vector<std::string_view>& words);

 private:
  struct Chunk {
    std::string_view text;  // without white space
    size_t letters;         // bytes at its front: letters, and other characters that no rule names
    size_t space;           // bytes of the white space behind it
  };
  Chunk next_chunk(std::string_view text, size_t begin) const;
  bool take_simple(const Chunk& chunk);
  void split_chunk(std::string_view chunk);
  bool take_exception(std::string_view word);
  void join_exceptions(size_t first);  // `first`: index of the chunk's first word
  void split_inside(std::string_view word);
  size_t front_mark(std::string_view word) const;  // bytes of the word that begins `word`; 0: none
  size_t end_mark(std::string_view word) const;    // bytes of the word that ends it
  size_t inner_mark(std::string_view word, size_t at) const;

  const CharMap& classes_;
  WordExceptions exceptions_;
  WordRules rules_;
  std::vector<std::string_view>* words_ = nullptr;
  std::vector<std::string_view> ends_;   // of the current chunk, the last one first
  std::vector<std::string_view> parts_;  // of the current chunk, while exceptions are joined
};

}  // namespace tokamak
