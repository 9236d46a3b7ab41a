#include "tokenizer/user_symbols.h"

#include <algorithm>

#include "tokenizer/normalize.h"

namespace tokamak {

UserSymbols::UserSymbols(const std::vector<Piece>& pieces) {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type != PieceType::kUserDefined) continue;
    symbols_.push_back({pieces[id].text, static_cast<int32_t>(id)});
    first_byte_[static_cast<unsigned char>(pieces[id].text[0])] = true;
  }
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) { return a.text < b.text; });
  for (size_t i = 1; i < symbols_.size(); ++i) {
    // A symbol that is a prefix of another is its predecessor, or a prefix of its predecessor.
    auto candidate = static_cast<int64_t>(i) - 1;
    while (candidate >= 0 && !symbols_[i].text.starts_with(symbols_[candidate].text)) {
      candidate = symbols_[candidate].shorter;
    }
    symbols_[i].shorter = candidate;
  }
}

// Everything that sorts between a prefix of `text` and `text` itself begins with that prefix. So the longest match is
// the last symbol not after `text`, or one of that symbol's prefixes.
UserSymbols::Match UserSymbols::longest(std::string_view text) const {
  const auto after = std::upper_bound(symbols_.begin(), symbols_.end(), text,
                                      [](std::string_view t, const Symbol& symbol) { return t < symbol.text; });
  for (int64_t i = after - symbols_.begin() - 1; i >= 0; i = symbols_[i].shorter) {
    const Symbol& symbol = symbols_[i];
    if (text.starts_with(symbol.text)) return {symbol.id, std::ssize(symbol.text)};
  }
  return {};
}

UserSymbols::Match UserSymbols::find(std::string_view text) const {
  if (symbols_.empty()) return {};
  const char first = symbols_.front().text[0];
  const bool one_first_byte = first == symbols_.back().text[0];  // they are sorted
  for (size_t at = 0; at < text.size(); ++at) {
    if (one_first_byte && (at = text.find(first, at)) == std::string_view::npos) break;
    Match found = match(text.substr(at));
    found.begin = at;
    if (found.id >= 0) return found;
  }
  return {};
}

bool UserSymbols::have_spaces() const {
  return std::any_of(symbols_.begin(), symbols_.end(), [](const Symbol& symbol) {
    return symbol.text.find(' ') != std::string::npos || symbol.text.find(kSpaceSymbol) != std::string::npos;
  });
}

}  // namespace tokamak
