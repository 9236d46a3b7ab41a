#include "tokenizer/hf/pre_tokenizer.h"

#include <array>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/hf/chars.h"

namespace tokamak {

namespace {

using StepKind = PreTokenizerStep::Kind;
using Pieces = std::vector<PieceList::One>;

// The pattern of a step that makes a piece of each match and each gap; "" for any other step.
std::string_view isolating_pattern(const PreTokenizerStep& step) {
  switch (step.kind) {
    case StepKind::kSplit:
      return step.pattern.kind == SearchPattern::Kind::kRegex && step.behavior == SplitBehavior::kIsolated
                 ? std::string_view(step.pattern.text)
                 : "";
    case StepKind::kDigits:
      return step.individual_digits ? kDigitPattern : kDigitsPattern;
    case StepKind::kByteLevel:
      return step.use_regex && !step.add_prefix_space ? pattern_named("gpt2") : "";
    default:
      return "";
  }
}

// Errors of a pattern name the file.
template <class Make>
auto for_file(const std::string& source, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.kind(), str(source, ": pre_tokenizer: ", error.what()), error.hint());
  }
}

void scan_pieces(const Scanner& scanner, PieceList& list) {
  std::array<uint32_t, 256> ends;
  for (const PieceList::One& piece : list.pieces) {
    const std::string_view text = list.text.substr(piece.begin, piece.end - piece.begin);
    size_t at = 0;
    while (const size_t count = scanner.scan(text, at, ends)) {
      for (size_t i = 0; i < count; at = ends[i++]) {
        list.next.push_back({piece.begin + at, piece.begin + ends[i], piece.at_start && at == 0});
      }
    }
  }
}

// Appends the pieces that `behavior` makes of the matches and gaps in `found`. `invert` exchanges them first.
void apply_behavior(const PieceList::One& whole, const std::vector<FoundPiece>& found, SplitBehavior behavior,
                    bool invert, Pieces& out) {
  const size_t first = out.size();
  bool before_was_match = false;
  const auto add = [&](const FoundPiece& piece) {
    out.push_back({whole.begin + piece.begin, whole.begin + piece.end, whole.at_start && piece.begin == 0});
  };
  const auto join = [&](const FoundPiece& piece) { out.back().end = whole.begin + piece.end; };
  for (const FoundPiece& piece : found) {
    const bool is_match = piece.is_match != invert;
    const bool has_before = out.size() > first;
    switch (behavior) {
      case SplitBehavior::kIsolated:
        add(piece);
        break;
      case SplitBehavior::kRemoved:
        if (!is_match) add(piece);
        break;
      case SplitBehavior::kContiguous:
        has_before&& is_match == before_was_match ? join(piece) : add(piece);
        break;
      case SplitBehavior::kMergedWithPrevious:
        is_match&& has_before && !before_was_match ? join(piece) : add(piece);
        break;
      case SplitBehavior::kMergedWithNext:
        // A gap joins the match before it; a match that follows another stands alone.
        !is_match&& has_before&& before_was_match ? join(piece) : add(piece);
        break;
    }
    before_was_match = is_match;
  }
}

bool begins_with(std::string_view text, const PieceList::One& piece, std::string_view prefix) {
  return text.substr(piece.begin, piece.end - piece.begin).starts_with(prefix);
}

// Rewrites the text: each piece, perhaps with `prefix` before it, and with `to` for each space.
void rewrite(PieceList& list, std::string_view prefix, PrependScheme scheme, std::string_view to) {
  list.next_written.clear();
  for (PieceList::One& piece : list.pieces) {
    const size_t begin = list.next_written.size();
    const bool prepends = scheme == PrependScheme::kAlways || (scheme == PrependScheme::kFirst && piece.at_start);
    const bool has_prefix =
        begins_with(list.text, piece, prefix) || (to == prefix && begins_with(list.text, piece, " "));
    if (prepends && !has_prefix) list.next_written += prefix;
    for (const char c : list.text.substr(piece.begin, piece.end - piece.begin)) {
      c == ' ' ? list.next_written += to : list.next_written += c;
    }
    piece = {begin, list.next_written.size(), piece.at_start};
  }
  std::swap(list.written, list.next_written);
  list.text = list.written;
}

// Before each `mark` a piece begins.
void split_before(std::string_view mark, PieceList& list) {
  for (const PieceList::One& piece : list.pieces) {
    const std::string_view text = list.text.substr(0, piece.end);
    for (size_t begin = piece.begin; begin < piece.end;) {
      const size_t end = std::min(text.find(mark, begin + 1), piece.end);
      list.next.push_back({begin, end, piece.at_start && begin == piece.begin});
      begin = end;
    }
  }
  list.pieces.swap(list.next);
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStep>& all, const std::string& source) {
  byte_level_ = !all.empty() && all.back().kind == StepKind::kByteLevel;
  std::vector<PreTokenizerStep> steps = all;
  if (byte_level_ && !steps.back().add_prefix_space && !steps.back().use_regex) steps.pop_back();
  // The last steps as one scanner, where there is one for all of them or for the last.
  std::vector<std::string_view> patterns;
  size_t first = steps.size();
  for (; first > 0 && !isolating_pattern(steps[first - 1]).empty(); --first) {
    patterns.insert(patterns.begin(), isolating_pattern(steps[first - 1]));
  }
  if (patterns.size() > 1) scanner_ = for_file(source, [&] { return make_scanner(patterns); });
  if (scanner_ == nullptr && !patterns.empty()) {
    scanner_ = for_file(source, [&] { return make_scanner(patterns.back()); });
    first = steps.size() - 1;
  }
  for (size_t i = 0; i < first; ++i) steps_.push_back(compile(steps[i], source));
}

PreTokenizer::Step PreTokenizer::compile(const PreTokenizerStep& step, const std::string& source) {
  Step compiled{step, nullptr, nullptr};
  if (const std::string_view pattern = isolating_pattern(step); !pattern.empty()) {
    compiled.scanner = for_file(source, [&] { return make_scanner(pattern); });
    return compiled;
  }
  switch (step.kind) {
    case StepKind::kByteLevel:
      if (step.use_regex) compiled.scanner = make_scanner(pattern_named("gpt2"));
      break;
    case StepKind::kSplit:
      compiled.search = for_file(source, [&] { return make_text_search(step.pattern); });
      break;
    case StepKind::kWhitespace:
      compiled.search = make_set_search(word_set(), SetMatches::kRuns);
      break;
    case StepKind::kPunctuation:
      compiled.search = make_set_search(punctuation_set(), SetMatches::kCharacters);
      break;
    case StepKind::kMetaspace:
    case StepKind::kDigits:
      break;
  }
  return compiled;
}

void PreTokenizer::split(TextPart part, PieceList& list) const {
  list.text = part.text;
  list.pieces.assign(1, {0, part.text.size(), part.at_start});
  for (const Step& step : steps_) run(step, list);
}

void PreTokenizer::run(const Step& step, PieceList& list) {
  const PreTokenizerStep& what = step.what;
  list.next.clear();
  if (what.kind == StepKind::kMetaspace) {
    rewrite(list, what.replacement, what.prepend, what.replacement);
    if (what.split) split_before(what.replacement, list);
    return;
  }
  if (what.kind == StepKind::kByteLevel && what.add_prefix_space) rewrite(list, " ", PrependScheme::kAlways, " ");
  if (step.scanner != nullptr) {
    scan_pieces(*step.scanner, list);
    list.pieces.swap(list.next);
    return;
  }
  if (step.search == nullptr) return;
  for (const PieceList::One& piece : list.pieces) {
    list.found.clear();
    const std::string_view text = list.text.substr(piece.begin, piece.end - piece.begin);
    step.search->cut(text, list.found);
    if (what.kind != StepKind::kWhitespace) {
      apply_behavior(piece, list.found, what.behavior, what.invert, list.next);
      continue;
    }
    for (const FoundPiece& found : list.found) {
      if (found.is_match) {
        list.next.push_back({piece.begin + found.begin, piece.begin + found.end, piece.at_start && found.begin == 0});
        continue;
      }
      // Maximal runs of characters that are neither word characters nor white space.
      for (size_t at = found.begin; at < found.end;) {
        at += white_space_at_start(text.substr(at, found.end - at));
        size_t end = at;
        while (end < found.end && white_space_at_start(text.substr(end, found.end - end)) == 0) {
          end += static_cast<size_t>(decode_valid_utf8(text.data() + end).length);
        }
        if (at < end) list.next.push_back({piece.begin + at, piece.begin + end, piece.at_start && at == 0});
        at = end;
      }
    }
  }
  list.pieces.swap(list.next);
}

}  // namespace tokamak
