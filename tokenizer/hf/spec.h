// A tokenizer as plain data, as tokenizer.json describes it. The readers fill it, HfTokenizer runs it, exports write
// it. Every field of a file is here or was refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/hf/vocab_table.h"

namespace tokamak {

// A step searches for a literal text, or for a regular expression. Readers refuse an empty one.
struct SearchPattern {
  enum class Kind { kText, kRegex };
  Kind kind = Kind::kText;
  std::string text;
};

struct NormalizerStep {
  enum class Kind { kNfc, kNfkc, kPrepend, kReplace, kStrip };
  Kind kind = Kind::kNfc;
  SearchPattern pattern;    // kReplace
  std::string content;      // kPrepend, kReplace
  bool strip_left = false;  // kStrip
  bool strip_right = false;
};

// A token that is cut out of the text before the model sees it.
struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // only between characters that are no word characters
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool normalized = false;   // searched for, itself normalized, in the normalized text
  bool special = false;      // left out of decoded text
  bool in_text = true;       // false: never found in text (tekken's control tokens)
};

enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kOff, kFirst, kAlways };

struct PreTokenizerStep {
  enum class Kind { kByteLevel, kDigits, kSplit, kMetaspace, kWhitespace, kPunctuation };
  Kind kind = Kind::kByteLevel;
  bool add_prefix_space = false;  // kByteLevel
  bool use_regex = false;         // kByteLevel: splits by GPT-2's pattern
  bool individual_digits = false;
  SearchPattern pattern;                              // kSplit
  SplitBehavior behavior = SplitBehavior::kIsolated;  // kSplit, kPunctuation
  bool invert = false;                                // kSplit: matches and gaps change places
  std::string replacement;                            // kMetaspace: what a space becomes
  PrependScheme prepend = PrependScheme::kAlways;     // kMetaspace
  bool split = true;                                  // kMetaspace: before each replacement
};

struct BpeSpec {
  VocabTable pieces;             // as the file writes them: of a byte-level model in printable characters (byte_map.h)
  std::vector<BpeMerge> merges;  // each pair once
  bool whole_pieces = false;     // `ignore_merges`
  bool fuse_unk = false;
  bool byte_fallback = false;
  int32_t unk_id = -1;
  std::string unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
};

struct DecoderStep {
  enum class Kind { kByteLevel, kByteFallback, kFuse, kReplace, kStrip, kMetaspace, kBpe };
  Kind kind = Kind::kByteLevel;
  SearchPattern pattern;  // kReplace
  std::string content;    // kReplace; kStrip: one character
  int64_t start = 0;      // kStrip: of each token, at most this many
  int64_t stop = 0;
  std::string replacement;                         // kMetaspace: one character
  PrependScheme prepend = PrependScheme::kAlways;  // kMetaspace
  std::string suffix;                              // kBpe
};

struct TokenizerSpec {
  std::string path;    // of the file
  std::string hash;    // XXH3-128 of the file's bytes; of a .tiktoken file, of its preset's name too
  std::string format;  // "tokenizer.json", "tekken" or "tiktoken"
  std::string preset;  // of a .tiktoken file

  std::vector<NormalizerStep> normalizer;
  std::vector<AddedToken> added;  // in the file's order
  std::vector<PreTokenizerStep> pre_tokenizer;
  BpeSpec model;
  std::vector<int32_t> prefix_ids;  // what the post-processor puts before and after one text
  std::vector<int32_t> suffix_ids;
  std::optional<std::vector<DecoderStep>> decoder;  // none: the pieces, joined by spaces

  int32_t bos_id = -1;  // each of these is -1 if no file says it
  int32_t eos_id = -1;
  int32_t unk_id = -1;
  int32_t pad_id = -1;
  std::string chat_template;         // "": there is none
  std::vector<std::string> files;    // what lies beside the file and belongs to it, by name
  std::vector<std::string> remarks;  // what the file holds that has no effect on ids here

  bool begins_with_bos() const { return bos_id >= 0 && !prefix_ids.empty() && prefix_ids[0] == bos_id; }
  bool ends_with_eos() const { return eos_id >= 0 && !suffix_ids.empty() && suffix_ids.back() == eos_id; }
  int64_t vocab_size() const {  // 1 + the largest id
    int64_t size = model.pieces.ids();
    for (const AddedToken& token : added) size = token.id >= size ? token.id + int64_t{1} : size;
    return size;
  }
};

}  // namespace tokamak
