#include "tokenizer/hf/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"

namespace tokamak {

namespace {

std::vector<Piece> as_symbols(const std::vector<AddedToken>& tokens) {
  std::vector<Piece> pieces;
  for (const AddedToken& token : tokens) pieces.push_back({token.content, 0, PieceType::kUserDefined});
  return pieces;
}

size_t two_bytes(char first, char second) {
  return static_cast<unsigned char>(first) | size_t{static_cast<unsigned char>(second)} << 8;
}

}  // namespace

// Steps through the places where a token may begin. It searches each first byte on its own, so that the search runs at
// the speed of memchr.
class AddedTokens::Finder {
 public:
  Finder(const AddedTokens& tokens, std::string_view text) : tokens_(tokens), text_(text) {
    if (tokens.first_bytes_.size() > next_.size()) return;
    for (size_t i = 0; i < tokens.first_bytes_.size(); ++i) next_[i] = find(i, 0);
  }

  // The first match from `at` on; without a token at the end.
  Match find(size_t at) {
    for (; (at = candidate(at)) < text_.size(); ++at) {
      const std::string_view rest = text_.substr(at);
      if (!tokens_.first_two_[two_bytes(rest[0], rest.size() > 1 ? rest[1] : '\0')]) continue;
      const UserSymbols::Match match = tokens_.symbols_.match(rest);
      if (match.id < 0) continue;
      return {at, at + static_cast<size_t>(match.length), &tokens_.tokens_[static_cast<size_t>(match.id)]};
    }
    return {};
  }

 private:
  size_t find(size_t which, size_t at) const {
    const size_t found = text_.find(tokens_.first_bytes_[which], at);
    return found == std::string_view::npos ? text_.size() : found;
  }

  size_t candidate(size_t at) {
    const std::string& firsts = tokens_.first_bytes_;
    if (firsts.size() > next_.size()) {
      while (at < text_.size() && firsts.find(text_[at]) == std::string::npos) ++at;
      return at;
    }
    size_t nearest = text_.size();
    for (size_t i = 0; i < firsts.size(); ++i) {
      if (next_[i] < at) next_[i] = find(i, at);
      nearest = std::min(nearest, next_[i]);
    }
    return nearest;
  }

  const AddedTokens& tokens_;
  std::string_view text_;
  std::array<size_t, 4> next_{};  // of each first byte: its next place
};

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, SpecialsPolicy specials)
    : tokens_(std::move(tokens)), specials_(specials), symbols_(as_symbols(tokens_)) {
  for (const AddedToken& token : tokens_) {
    const char first = token.content[0];
    if (first_bytes_.find(first) == std::string::npos) first_bytes_ += first;
    if (token.content.size() > 1) {
      first_two_.set(two_bytes(first, token.content[1]));
    } else {
      for (int second = 0; second < 256; ++second) first_two_.set(two_bytes(first, static_cast<char>(second)));
    }
    if (token.single_word && words_.empty()) words_ = word_set();
  }
}

bool AddedTokens::is_single_word(std::string_view text, const Match& match) const {
  const auto is_word = [&](const char* character) { return words_.contains(decode_valid_utf8(character).code); };
  if (match.begin > 0 && is_word(last_character(text.substr(0, match.begin)).data())) return false;
  return match.end == text.size() || !is_word(text.data() + match.end);
}

void AddedTokens::cut(std::string_view text, std::vector<Span>& spans) const {
  spans.clear();
  size_t done = 0;
  if (!tokens_.empty()) {
    Finder finder(*this, text);
    for (Match match = finder.find(0); match.token != nullptr; match = finder.find(match.end)) {
      if (specials_ == SpecialsPolicy::kText && match.token->special) continue;
      if (match.token->single_word && !is_single_word(text, match)) continue;
      size_t begin = match.begin, end = match.end;
      if (match.token->lstrip) begin = std::max(begin - white_space_at_end(text.substr(0, begin)), done);
      if (match.token->rstrip) end += white_space_at_start(text.substr(end));
      if (done < begin) spans.push_back({done, begin, -1});
      spans.push_back({begin, end, match.token->id});
      done = end;
    }
  }
  if (done != text.size()) spans.push_back({done, text.size(), -1});
}

}  // namespace tokamak
