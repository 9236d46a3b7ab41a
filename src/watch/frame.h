// The contents of a terminal: rows of cells, each a character and a style. Texts come from files that others may
// write, so a cell holds only characters of one column, and no escape sequence gets through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

enum class Style : uint8_t { kPlain, kDim, kBold, kGood, kWarning, kBad, kCurve, kSecondCurve };

struct Cell {
  char32_t glyph = U' ';
  Style style = Style::kPlain;
};

class Frame {
 public:
  Frame(int rows, int columns);  // fills all cells with blanks

  int rows() const { return rows_; }
  int columns() const { return columns_; }

  // Cuts at the edges and returns the column after the text. Characters of no or two columns and invalid UTF-8 become
  // '?', control characters blanks.
  int put(int row, int column, std::string_view text, Style style = Style::kPlain);
  void set(int row, int column, Cell cell);

  void draw_in_ascii();  // replaces braille, bars and other characters, for a locale without UTF-8

  const Cell& at(int row, int column) const;
  std::string row_text(int row) const;  // without blanks at its end
  std::string text() const;             // of all rows, each with a newline; without empty rows at the end

 private:
  int rows_, columns_;
  std::vector<Cell> cells_;  // (rows, columns)
};

// Writes fields into a row, two blanks apart. A field that does not fit is left out as a whole.
class FieldRow {
 public:
  FieldRow(Frame& frame, int row, int column = 0) : frame_(frame), row_(row), column_(column) {}
  void add(std::string_view text, Style style = Style::kPlain);

 private:
  Frame& frame_;
  int row_, column_;
};

// Whether the first of LC_ALL, LC_CTYPE and LANG that is set names no UTF-8 encoding: "C", "de_DE.ISO-8859-1". With
// none set, as often over ssh, UTF-8 is assumed.
bool wants_ascii();

int columns_of(std::string_view text);

// The whole words that fit, with "..." where some are left out. Words are never cut: a cut number is a wrong number.
std::string fitting(std::string_view text, int columns);

}  // namespace tokamak
