#include "infer/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace tokamak {

// Decoding starts at a token that was already shown, so the cost per token does not grow with the text.
std::string Detokenizer::added() const {
  const std::span<const int32_t> ids = std::span(ids_).subspan(from_);
  const std::string before = tokenizer_->decode(ids.first(shown_ - from_)), all = tokenizer_->decode(ids);
  return starts_with(all, before) ? all.substr(before.size()) : "";
}

std::string Detokenizer::next(int32_t id) {
  ids_.push_back(id);
  std::string text = added();
  if (text.empty() || text.ends_with(kReplacementChar)) return "";  // bytes that are not yet a character
  from_ = shown_;
  shown_ = ids_.size();
  return text;
}

std::string Detokenizer::rest() const { return added(); }

std::string StopFilter::feed(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  size_t begin = held_.size(), end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t its_end = at + stop.size();
    if (end == std::string::npos || its_end < end || (its_end == end && at < begin)) {
      begin = at;
      end = its_end;
    }
  }
  stopped_ = end != std::string::npos;
  if (!stopped_) begin = possible_beginning();
  std::string shown = held_.substr(0, begin);
  held_ = stopped_ ? "" : held_.substr(begin);
  return shown;
}

std::string StopFilter::rest() { return std::exchange(held_, ""); }

size_t StopFilter::possible_beginning() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) longest = std::max(longest, stop.size());
  for (size_t at = held_.size() - std::min(held_.size(), longest); at < held_.size(); ++at) {
    const std::string_view end = std::string_view(held_).substr(at);
    if (std::any_of(stops_.begin(), stops_.end(), [&](const std::string& s) { return starts_with(s, end); })) return at;
  }
  return held_.size();
}

}  // namespace tokamak
