#include "tokenizer/hf/normalizer.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/hf/chars.h"
#include "tokenizer/scan/normalization.h"

namespace tokamak {

namespace {

// Whether each byte is below `bound`: a text without bytes from 0xCC on is in NFC, one of ASCII is in NFKC.
bool is_below(std::string_view text, unsigned char bound) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < bound; });
}

}  // namespace

Normalizer::Normalizer(const std::vector<NormalizerStep>& steps, const std::string& source) {
  for (const NormalizerStep& step : steps) {
    steps_.push_back({step, nullptr});
    if (step.kind != NormalizerStep::Kind::kReplace) continue;
    try {
      steps_.back().search = make_text_search(step.pattern);
    } catch (const Error& error) {
      throw Error(error.kind(), str(source, ": normalizer: ", error.what()), error.hint());
    }
  }
}

TextPart Normalizer::apply(TextPart part, Buffers& buffers) const {
  for (const Step& step : steps_) part = apply(step, part, buffers);
  return part;
}

TextPart Normalizer::apply(const Step& step, TextPart part, Buffers& buffers) {
  const std::string_view text = part.text;
  std::string& out = buffers.next;
  const auto written = [&](bool at_start) -> TextPart {
    std::swap(buffers.current, buffers.next);
    return {buffers.current, at_start};
  };
  out.clear();
  switch (step.what.kind) {
    case NormalizerStep::Kind::kNfc:
      if (is_below(text, 0xCC)) return part;
      append_nfc(text, out);
      return written(part.at_start);
    case NormalizerStep::Kind::kNfkc:
      if (is_below(text, 0x80)) return part;
      append_nfkc(text, out);
      return written(part.at_start);
    case NormalizerStep::Kind::kPrepend:
      if (text.empty()) return part;
      out.append(step.what.content).append(text);
      return written(part.at_start);
    case NormalizerStep::Kind::kReplace: {
      buffers.found.clear();
      step.search->cut(text, buffers.found);
      if (buffers.found.size() == 1 && !buffers.found[0].is_match) return part;
      for (const FoundPiece& piece : buffers.found) {
        out += piece.is_match ? std::string_view(step.what.content) : text.substr(piece.begin, piece.end - piece.begin);
      }
      const bool lost_start = !buffers.found.empty() && buffers.found[0].is_match && step.what.content.empty();
      return written(part.at_start && !lost_start);
    }
    case NormalizerStep::Kind::kStrip: {
      const size_t left = step.what.strip_left ? white_space_at_start(text) : 0;
      std::string_view rest = text.substr(left);
      if (step.what.strip_right) rest.remove_suffix(white_space_at_end(rest));
      return {rest, part.at_start && left == 0};
    }
  }
  return part;
}

}  // namespace tokamak
