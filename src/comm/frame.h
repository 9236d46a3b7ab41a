// What ranks say to each other before they are connected: frames of words. A frame is "TOKAMAK1", a 32-bit length, and
// words with a zero byte between them. Whoever reaches a port may send anything, so a reader has limits, takes no more
// memory than its limit, and never waits.
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
    kMore,    // nothing more is there yet
    kWhole,   // take() has it
    kEnded,   // the peer has gone
    kBroken,  // no frame of ours, or beyond the limits
  };

  FrameReader() = default;
  explicit FrameReader(FrameLimits limits) : limits_(limits) {}

  // Reads what is there, to the end of the frame and not beyond.
  State read(const Socket& socket);
  bool has_begun() const { return got_ > 0; }
  Words take();  // the words of a whole frame; the next one may begin

 private:
  bool header_is_sound() const;  // as far as it is there
  size_t length() const;         // of the text, as the header says it

  FrameLimits limits_;
  std::string bytes_;
  size_t got_ = 0;
};

}  // namespace tokamak
