#include "watch/braille.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("each dot of a cell is the bit that Unicode gives it") {
  // Dots 1 to 8 of the standard's table: 1 2 3 7 down the left side, 4 5 6 8 down the right one.
  const char32_t expected[4][2] = {{0x2801, 0x2808}, {0x2802, 0x2810}, {0x2804, 0x2820}, {0x2840, 0x2880}};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 2; ++x) {
      BrailleCanvas canvas(2, 2);
      canvas.set(2 + x, 4 + y);
      CHECK(canvas.at(1, 1) == expected[y][x]);
      CHECK(canvas.at(0, 0) == 0x2800);
    }
  }
}

TEST_CASE("a line has both ends, and each dot touches the next") {
  BrailleCanvas canvas(2, 1);
  canvas.line(0, 3, 3, 0);
  CHECK(canvas.at(0, 0) == (0x2840 | 0x2820));
  CHECK(canvas.at(1, 0) == (0x2802 | 0x2808));
  BrailleCanvas upright(1, 1);
  upright.line(1, 3, 1, 0);
  CHECK(upright.at(0, 0) == 0x28B8);
}

TEST_CASE("dots outside of the canvas, and a canvas of nothing, are no error") {
  BrailleCanvas canvas(1, 1);
  canvas.line(-3, 0, 5, 0);
  CHECK(canvas.at(0, 0) == (0x2801 | 0x2808));
  BrailleCanvas none(0, -1);
  none.line(0, 0, 3, 3);
  CHECK(none.height() == 0);
}
