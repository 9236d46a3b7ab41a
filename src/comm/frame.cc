#include "comm/frame.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::string_view kMagic = "TOKAMAK1";
constexpr size_t kHeader = kMagic.size() + sizeof(uint32_t);

}  // namespace

std::string frame_of(const Words& words) {
  const std::string text = join(words, std::string_view("\0", 1));
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(kMagic);
  frame.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return frame + text;
}

bool FrameReader::header_is_sound() const {
  const size_t known = std::min(got_, kMagic.size());
  if (kMagic.substr(0, known) != std::string_view(bytes_).substr(0, known)) return false;
  return got_ < kHeader || length() <= limits_.bytes;
}

size_t FrameReader::length() const {
  uint32_t length = 0;
  std::memcpy(&length, bytes_.data() + kMagic.size(), sizeof(length));
  return length;
}

FrameReader::State FrameReader::read(const Socket& socket) {
  while (true) {
    const size_t wanted = got_ < kHeader ? kHeader : kHeader + length();
    if (got_ == wanted) break;
    bytes_.resize(wanted);
    const int64_t received = socket.receive_some(bytes_.data() + got_, wanted - got_);
    if (received < 0) return State::kEnded;
    if (received == 0) return State::kMore;
    got_ += received;
    if (!header_is_sound()) return State::kBroken;
  }
  const auto separators = std::count(bytes_.begin() + kHeader, bytes_.end(), '\0');
  return static_cast<size_t>(separators) < limits_.words ? State::kWhole : State::kBroken;
}

Words FrameReader::take() {
  Words words = split(bytes_.substr(kHeader), '\0');
  bytes_.clear();
  got_ = 0;
  return words;
}

}  // namespace tokamak
