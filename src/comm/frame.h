// Messages between ranks before they are connected: frames of words. A frame is "TOKAMAK1", a 32-bit length, and words
// separated by zero bytes. Any process may connect and send anything, so a reader never waits and takes at most its
// limit of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/socket.h"

namespace tokamak {

using Words = std::vector<std::string>;

std::string frame_of(const Words& words);

struct FrameLimits {
  size_t bytes = 4096;
  size_t words = 8;
};

class FrameReader {
 public:
  enum class State {
    kMore,    // the frame is incomplete so far
    kWhole,   // take() returns it
    kEnded,   // the peer has closed the connection
    kBroken,  // not a frame of ours, or beyond the limits
  };

  FrameReader() = default;
  explicit FrameReader(FrameLimits limits) : limits_(limits) {}

  // Reads the available bytes, up to the end of the frame.
  State read(const Socket& socket);
  bool has_begun() const { return got_ > 0; }
  Words take();  // the words of a whole frame; the next one may begin

 private:
  bool header_is_sound() const;  // judges the part of it that has arrived
  size_t length() const;         // of the words in bytes, from the header

  FrameLimits limits_;
  std::string bytes_;
  size_t got_ = 0;
};

}  // namespace tokamak
