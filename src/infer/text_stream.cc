#include "infer/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace tokamak {

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
