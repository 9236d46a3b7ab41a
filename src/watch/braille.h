// A canvas of dots as Unicode's braille patterns (U+2800 to U+28FF): two across and four down in a character. Dots
// outside of it are ignored.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

class BrailleCanvas {
 public:
  BrailleCanvas(int columns, int rows);  // in characters

  int width() const { return 2 * columns_; }  // in dots
  int height() const { return 4 * rows_; }

  void set(int x, int y);                     // from the top left
  void line(int x0, int y0, int x1, int y1);  // with both ends

  char32_t at(int column, int row) const;  // U+2800: no dot

 private:
  int columns_, rows_;
  std::vector<uint8_t> bits_;  // (rows, columns)
};

}  // namespace tokamak
