#include "tokenizer/hf/text_search.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/scan/pattern.h"

namespace tokamak {

namespace {

void append_gap(size_t begin, size_t end, std::vector<FoundPiece>& pieces) {
  if (begin < end) pieces.push_back({begin, end, false});
}

class LiteralSearch final : public TextSearch {
 public:
  explicit LiteralSearch(std::string literal) : literal_(std::move(literal)) {}
  void cut(std::string_view text, std::vector<FoundPiece>& pieces) const override {
    size_t done = 0;
    for (size_t at; (at = text.find(literal_, done)) != std::string_view::npos; done = at + literal_.size()) {
      append_gap(done, at, pieces);
      pieces.push_back({at, at + literal_.size(), true});
    }
    append_gap(done, text.size(), pieces);
  }

 private:
  std::string literal_;  // not empty
};

class SetSearch final : public TextSearch {
 public:
  SetSearch(CharSet set, SetMatches matches) : set_(std::move(set)), matches_(matches) {}
  void cut(std::string_view text, std::vector<FoundPiece>& pieces) const override {
    size_t gap = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t next = after(text, at);
      if (next == at) {
        at += static_cast<size_t>(decode_valid_utf8(text.data() + at).length);
        continue;
      }
      append_gap(gap, at, pieces);
      pieces.push_back({at, next, true});
      gap = at = next;
    }
    append_gap(gap, text.size(), pieces);
  }

 private:
  // The end of the match at `at`; `at` itself if there is none.
  size_t after(std::string_view text, size_t at) const {
    while (at < text.size()) {
      const Utf8Char c = decode_valid_utf8(text.data() + at);
      if (!set_.contains(c.code)) break;
      at += static_cast<size_t>(c.length);
      if (matches_ == SetMatches::kCharacters) break;
    }
    return at;
  }

  CharSet set_;
  SetMatches matches_;
};

class RegexSearch final : public TextSearch {
 public:
  explicit RegexSearch(std::string_view pattern) : pattern_(pattern) {}
  void cut(std::string_view text, std::vector<FoundPiece>& pieces) const override {
    PatternSearch search(pattern_, text);
    size_t done = 0;
    while (const std::optional<PatternMatch> match = search.next()) {
      append_gap(done, match->begin, pieces);
      pieces.push_back({match->begin, match->end, true});
      done = match->end;
    }
    append_gap(done, text.size(), pieces);
  }
  bool can_be_empty() const { return pattern_.can_be_empty(); }

 private:
  Pattern pattern_;
};

}  // namespace

std::unique_ptr<TextSearch> make_text_search(const SearchPattern& pattern) {
  if (pattern.kind == SearchPattern::Kind::kText) return std::make_unique<LiteralSearch>(pattern.text);
  auto search = std::make_unique<RegexSearch>(pattern.text);
  if (search->can_be_empty()) {
    fail(Kind::kData,
         str("pattern '", printable(pattern.text, 200), "' matches the empty string, which is not supported here"));
  }
  return search;
}

std::unique_ptr<TextSearch> make_set_search(CharSet set, SetMatches matches) {
  return std::make_unique<SetSearch>(std::move(set), matches);
}

}  // namespace tokamak
