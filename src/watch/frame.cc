#include "watch/frame.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

bool takes_one_column(char32_t code) {
  return (code >= 0x20 && code < 0x7F) || (code >= 0xA1 && code < 0x300 && code != 0xAD) ||  // Latin
         (code >= 0x370 && code < 0x530 && (code < 0x483 || code > 0x489)) ||                // Greek, Cyrillic
         (code >= 0x2010 && code < 0x2028) ||                                                // dashes, quotes, dots
         (code >= 0x2190 && code < 0x2300) || (code >= 0x2500 && code < 0x2600) ||           // arrows, bars
         (code >= 0x2800 && code < 0x2900);                                                  // braille
}

char32_t shown(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0xA0)) return U' ';
  return takes_one_column(code) ? code : U'?';
}

// An ASCII mark at the height of the braille dots.
char32_t ascii_of_dots(char32_t dots) {
  constexpr char32_t kRows[4] = {0x09, 0x12, 0x24, 0xC0};  // from the top
  int rows = 0;
  char32_t mark = U' ';
  for (int row = 0; row < 4; ++row) {
    if ((dots & kRows[row]) == 0) continue;
    ++rows;
    mark = U"'--."[row];
  }
  return rows > 2 ? U'|' : rows == 2 && (dots & 0x36) == 0 ? U':' : mark;
}

char32_t ascii_of(char32_t glyph) {
  if (glyph >= 0x2800 && glyph < 0x2900) return ascii_of_dots(glyph - 0x2800);
  return glyph == U'\u2588' ? U'#' : glyph == U'\u2591' ? U'.' : glyph == U'\u250A' ? U':' : U'?';
}

}  // namespace

Frame::Frame(int rows, int columns)
    : rows_(std::max(0, rows)),
      columns_(std::max(0, columns)),
      cells_(static_cast<size_t>(rows_) * static_cast<size_t>(columns_)) {}

int Frame::put(int row, int column, std::string_view text, Style style) {
  while (!text.empty()) {
    const Utf8Char one = decode_utf8(text);
    text.remove_prefix(static_cast<size_t>(one.length));
    set(row, column++, {shown(one.code), style});
  }
  return column;
}

void Frame::set(int row, int column, Cell cell) {
  if (row < 0 || column < 0 || row >= rows_ || column >= columns_) return;
  cells_[static_cast<size_t>(row * columns_ + column)] = cell;
}

const Cell& Frame::at(int row, int column) const { return cells_.at(static_cast<size_t>(row * columns_ + column)); }

std::string Frame::row_text(int row) const {
  std::string text;
  for (int column = 0; column < columns_; ++column) append_utf8(at(row, column).glyph, text);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Frame::text() const {
  std::string text;
  for (int row = 0; row < rows_; ++row) text += row_text(row) + "\n";
  const size_t end = text.find_last_not_of('\n');
  return end == std::string::npos ? "" : text.substr(0, end + 1) + "\n";
}

void Frame::draw_in_ascii() {
  for (Cell& cell : cells_) {
    if (cell.glyph >= 0x80) cell.glyph = ascii_of(cell.glyph);
  }
}

void FieldRow::add(std::string_view text, Style style) {
  if (text.empty() || column_ + columns_of(text) > frame_.columns()) return;
  column_ = frame_.put(row_, column_, text, style) + 2;
}

bool wants_ascii() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const locale = std::getenv(name);
    if (locale == nullptr || *locale == 0) continue;
    return ::strcasestr(locale, "utf-8") == nullptr && ::strcasestr(locale, "utf8") == nullptr;
  }
  return false;
}

std::string fitting(std::string_view text, int columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::string_view dots = "...";
  const int room = columns - static_cast<int>(dots.size());
  size_t end = 0;
  for (size_t space = text.find(' '); space != std::string_view::npos; space = text.find(' ', space + 1)) {
    if (columns_of(text.substr(0, space)) > room) break;
    end = space;
  }
  if (room < 0 || end == 0) return "";
  const std::string_view words = trim(text.substr(0, end));
  return std::string(words.substr(0, words.find_last_not_of(",;:") + 1)).append(dots);
}

int columns_of(std::string_view text) {
  int columns = 0;
  for (; !text.empty(); ++columns) text.remove_prefix(static_cast<size_t>(decode_utf8(text).length));
  return columns;
}

}  // namespace tokamak
