#include "data/web/warc.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/printable.h"
#include "data/web/headers.h"

namespace tokamak {

namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kLongestLine = size_t{64} << 10;
constexpr int kMostHeaderLines = 1000;

std::optional<int64_t> count_of(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

}  // namespace

WarcReader::WarcReader(std::unique_ptr<ByteStream> stream, int64_t most)
    : stream_(std::move(stream)), most_(most), buffer_(kBufferBytes) {}

bool WarcReader::next(WarcRecord& record) {
  std::string line;
  do {  // the two line ends after the record before, or more
    if (!read_line(line)) return false;
  } while (line.empty());
  ++records_;
  if (!line.starts_with("WARC/1."))
    fail_here(str("it begins with '", printable(line), "', not with WARC/1.0 or WARC/1.1"));

  record = {};
  record.bytes = -1;
  for (int lines = 0;; ++lines) {
    if (!read_line(line)) fail_here("the file ends in its header");
    if (line.empty()) break;
    if (lines == kMostHeaderLines) fail_here(str("its header has more than ", kMostHeaderLines, " lines"));
    const Header header = header_of(line);
    if (header.is("WARC-Type"))
      record.type = header.value;
    else if (header.is("WARC-Record-ID"))
      record.id = header.value;
    else if (header.is("WARC-Target-URI"))
      record.uri = header.value;
    else if (header.is("WARC-Date"))
      record.date = header.value;
    else if (header.is("WARC-Identified-Payload-Type"))
      record.payload_type = header.value;
    else if (header.is("Content-Length")) {
      const std::optional<int64_t> count = count_of(header.value);
      if (!count) fail_here(str("its Content-Length is '", printable(header.value), "'"));
      record.bytes = *count;
    }
  }
  if (record.bytes < 0) fail_here("its header has no Content-Length");
  read_block(record);
  return true;
}

void WarcReader::read_block(WarcRecord& record) {
  const int64_t kept = std::min(record.bytes, most_);
  for (int64_t left = record.bytes; left > 0;) {
    if (at_ == filled_ && !fill()) fail_here(str("the file ends ", left, " bytes before the record does"));
    const auto count = std::min(static_cast<int64_t>(filled_ - at_), left);
    const int64_t wanted = std::clamp<int64_t>(kept - std::ssize(record.block), 0, count);
    record.block.append(buffer_.data() + at_, static_cast<size_t>(wanted));
    at_ += static_cast<size_t>(count);
    left -= count;
  }
}

bool WarcReader::fill() {
  at_ = 0;
  filled_ = static_cast<size_t>(stream_->read(std::as_writable_bytes(std::span(buffer_))));
  return filled_ > 0;
}

bool WarcReader::read_line(std::string& line) {
  line.clear();
  for (;;) {
    if (at_ == filled_ && !fill()) return !line.empty();
    const auto begin = buffer_.begin() + static_cast<int64_t>(at_),
               end = buffer_.begin() + static_cast<int64_t>(filled_);
    const auto found = std::find(begin, end, '\n');
    line.append(begin, found);
    at_ += static_cast<size_t>(found - begin);
    if (line.size() > kLongestLine) fail_here(str("a line of its header has more than ", kLongestLine, " bytes"));
    if (found == end) continue;
    ++at_;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }
}

void WarcReader::fail_here(const std::string& reason) const {
  fail(Kind::kData, str(stream_->path(), ", record ", records_, ", is damaged: ", reason),
       "restore the file from its source");
}

}  // namespace tokamak
