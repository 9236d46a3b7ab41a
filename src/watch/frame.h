// What a terminal shows: rows of cells, each a character and a style. Texts come from files that others write, so every
// cell holds a character that takes one column and does nothing else: no escape sequence gets through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

enum class Style : uint8_t { kPlain, kDim, kBold, kGood, kWarning, kBad, kCurve, kSecondCurve };
inline constexpr int kStyles = 8;

struct Cell {
  char32_t glyph = U' ';
  Style style = Style::kPlain;
};

class Frame {
 public:
  Frame(int rows, int columns);  // of blanks

  int rows() const { return rows_; }
  int columns() const { return columns_; }

  // Cut off at the edges. Returns the column after the text. What takes no or two columns, and what is no UTF-8, is
  // shown as '?', a control character as a blank.
  int put(int row, int column, std::string_view text, Style style = Style::kPlain);
  void set(int row, int column, Cell cell);

  void draw_in_ascii();  // replaces dots, bars and all that is no ASCII, for a terminal that has nothing else

  const Cell& at(int row, int column) const;
  std::string row_text(int row) const;  // without blanks at its end
  std::string text() const;             // of all rows, each with a newline; without empty rows at the end

 private:
  int rows_, columns_;
  std::vector<Cell> cells_;  // (rows, columns)
};

// Fields of a row, two blanks between them: each as a whole, or not at all where it does not fit.
class FieldRow {
 public:
  FieldRow(Frame& frame, int row, int column = 0) : frame_(frame), row_(row), column_(column) {}
  void add(std::string_view text, Style style = Style::kPlain);

 private:
  Frame& frame_;
  int row_, column_;
};

int columns_of(std::string_view text);  // that put takes for it

// As much of it as fits so many columns, in whole words, with "..." where some are left out: a number that is cut is a
// wrong number.
std::string fitting(std::string_view text, int columns);

}  // namespace tokamak
