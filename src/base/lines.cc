#include "base/lines.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

bool LineReader::fill() {
  constexpr int64_t kBlock = int64_t{1} << 20;  // bytes
  const int64_t length = std::min(kBlock, file_.size() - offset_);
  block_.resize(length);
  file_.read_at(offset_, std::as_writable_bytes(std::span(block_.data(), block_.size())));
  offset_ += length;
  at_ = 0;
  return length > 0;
}

bool LineReader::next(std::string& line, int64_t most) {
  line.clear();
  bool any = false;  // a last line without '\n' is a line if it has a byte
  while (at_ < block_.size() || fill()) {
    any = true;
    const char* begin = block_.data() + at_;
    const size_t rest = block_.size() - at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', rest));
    const size_t length = end == nullptr ? rest : static_cast<size_t>(end - begin);
    if (std::ssize(line) + static_cast<int64_t>(length) > most) {
      fail(Kind::kData, str(path(), ":", line_number_ + 1, ": a line of more than ", human_bytes(most)));
    }
    line.append(begin, length);
    at_ += length + 1;  // past the '\n', or past the block
    if (end != nullptr) break;
  }
  line_number_ += any ? 1 : 0;
  return any;
}

}  // namespace tokamak
