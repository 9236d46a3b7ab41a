// Rewrites text before it is cut into pretokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/spec.h"
#include "tokenizer/hf/text_search.h"

namespace tokamak {

// A part of a text that is encoded. `at_start`: it begins where the original text does, which `prepend_scheme: first`
// asks.
struct TextPart {
  std::string_view text;
  bool at_start = false;
};

// Immutable and shared by threads.
class Normalizer {
 public:
  Normalizer(const std::vector<NormalizerStep>& steps, const std::string& source);

  bool is_identity() const { return steps_.empty(); }
  // The result is `part.text` itself, or a view of one of the buffers.
  struct Buffers {
    std::string current, next;
    std::vector<FoundPiece> found;
  };
  TextPart apply(TextPart part, Buffers& buffers) const;

 private:
  struct Step {
    NormalizerStep what;
    std::unique_ptr<TextSearch> search;  // of kReplace
  };
  static TextPart apply(const Step& step, TextPart part, Buffers& buffers);

  std::vector<Step> steps_;
};

}  // namespace tokamak
