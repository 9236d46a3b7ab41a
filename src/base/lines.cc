#include "base/lines.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

bool LineReader::fill() {
  constexpr size_t kBlock = size_t{256} << 10;  // bytes; they stay in a core's cache
  block_.resize(kBlock);
  block_.resize(static_cast<size_t>(stream_->read(std::as_writable_bytes(std::span(block_.data(), block_.size())))));
  at_ = 0;
  return !block_.empty();
}

bool LineReader::next(std::string& line, int64_t most, LongLines long_lines) {
  line.clear();
  line_offset_ = next_offset_;
  bool any = false;  // a last line without '\n' is a line if it has a byte
  while (at_ < block_.size() || fill()) {
    any = true;
    const char* begin = block_.data() + at_;
    const size_t rest = block_.size() - at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', rest));
    const size_t length = end == nullptr ? rest : static_cast<size_t>(end - begin);
    const int64_t free = most - std::ssize(line);
    if (static_cast<int64_t>(length) > free && long_lines == LongLines::kFail) {
      fail(Kind::kData, str(path(), ":", line_number_ + 1, ": a line of more than ", human_bytes(most)));
    }
    line.append(begin, std::min(length, static_cast<size_t>(free + 1)));
    at_ += length + 1;  // past the '\n', or past the block
    next_offset_ += static_cast<int64_t>(length) + (end != nullptr ? 1 : 0);
    if (end != nullptr) break;
  }
  line_number_ += any ? 1 : 0;
  return any;
}

}  // namespace tokamak
