// Frames from any process that reaches a port. Whole frames are read in any pieces; broken ones are refused at once.
#include "comm/frame.h"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

using State = FrameReader::State;

class Pair {
 public:
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    writer = Socket(ends[0]);
    reader = Socket(ends[1]);
  }
  void write(const std::string& bytes) const { REQUIRE(writer.send(bytes.data(), std::ssize(bytes), in_seconds(5))); }

  Socket writer, reader;
};

std::string header_of(uint32_t length) {
  return "TOKAMAK1" + std::string(reinterpret_cast<const char*>(&length), sizeof(length));
}

}  // namespace

TEST_CASE("a frame is whole however it is cut, and the next one may follow at once") {
  const Pair pair;
  FrameReader reader;
  const std::string frame = frame_of({"a", "", "the third"});
  for (const char byte : frame) {
    CHECK(reader.read(pair.reader) == State::kMore);
    pair.write({byte});
  }
  pair.write(frame_of({"next"}));
  REQUIRE(reader.read(pair.reader) == State::kWhole);
  CHECK(reader.take() == Words{"a", "", "the third"});
  REQUIRE(reader.read(pair.reader) == State::kWhole);
  CHECK(reader.take() == Words{"next"});
}

TEST_CASE("what cannot become a frame within the limits is broken before its bytes have come") {
  const Pair pair;
  FrameReader reader(FrameLimits{.bytes = 100, .words = 3});
  const std::string begin = GENERATE(as<std::string>(), "TOKAMAK2", "G", header_of(101), header_of(0xFFFFFFFF),
                                     frame_of({"1", "2", "3", "4"}));
  pair.write(begin);
  CHECK(reader.read(pair.reader) == State::kBroken);
}

TEST_CASE("a peer that leaves in the middle of a frame has ended it") {
  Pair pair;
  FrameReader reader;
  pair.write(header_of(10) + "123");
  CHECK(reader.read(pair.reader) == State::kMore);
  pair.writer = Socket();
  CHECK(reader.read(pair.reader) == State::kEnded);
}
