#include "watch/braille.h"

#include <algorithm>
#include <cstdlib>

namespace tokamak {

namespace {

constexpr uint8_t kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};  // by y and x in a cell

}  // namespace

BrailleCanvas::BrailleCanvas(int columns, int rows)
    : columns_(std::max(0, columns)),
      rows_(std::max(0, rows)),
      bits_(static_cast<size_t>(columns_) * static_cast<size_t>(rows_)) {}

void BrailleCanvas::set(int x, int y) {
  if (x < 0 || y < 0 || x >= width() || y >= height()) return;
  bits_[static_cast<size_t>(y / 4 * columns_ + x / 2)] |= kDots[y % 4][x % 2];
}

void BrailleCanvas::line(int x0, int y0, int x1, int y1) {
  const int dx = std::abs(x1 - x0), dy = std::abs(y1 - y0);
  const int step_x = x0 < x1 ? 1 : -1, step_y = y0 < y1 ? 1 : -1;
  int error = dx - dy;  // Bresenham's
  for (;;) {
    set(x0, y0);
    if (x0 == x1 && y0 == y1) return;
    const int twice = 2 * error;
    if (twice > -dy) error -= dy, x0 += step_x;
    if (twice < dx) error += dx, y0 += step_y;
  }
}

char32_t BrailleCanvas::at(int column, int row) const {
  return 0x2800 + bits_.at(static_cast<size_t>(row * columns_ + column));
}

}  // namespace tokamak
