#include "data/rules/words.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "data/rules/ascii.h"
#include "data/rules/bytes.h"
#include "data/rules/web_address.h"

namespace tokamak {

namespace {

// After a number, longest first where one ends another.
constexpr std::string_view kUnits[] = {
    "km",  "km²", "km³", "m",  "m²",   "m³",  "dm", "dm²", "dm³",  "cm",  "cm²", "cm³",  "mm", "mm²", "mm³",
    "ha",  "µm",  "nm",  "yd", "in",   "ft",  "kg", "g",   "mg",   "µg",  "t",   "lb",   "oz", "m/s", "km/h",
    "kmh", "mph", "hPa", "Pa", "mbar", "mb",  "MB", "kb",  "KB",   "gb",  "GB",  "tb",   "TB", "T",   "G",
    "M",   "K",   "%",   "км", "км²",  "км³", "м",  "м²",  "м³",   "дм",  "дм²", "дм³",  "см", "см²", "см³",
    "мм",  "мм²", "мм³", "нм", "кг",   "г",   "мг", "м/с", "км/ч", "кПа", "Па",  "мбар", "Кб", "КБ",  "кб",
    "Мб",  "МБ",  "мб",  "Гб", "ГБ",   "гб",  "Тб", "ТБ",  "тб",   "US$", "C$",  "A$"};
constexpr size_t kLongestUnit = 8;  // bytes

Utf8Char first_of(std::string_view text) { return decode_valid_utf8(text.data()); }

// The character that ends before `end`, which is not 0.
Utf8Char before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return decode_valid_utf8(text.data() + at);
}

size_t count_front(std::string_view text, char c) { return std::min(text.find_first_not_of(c), text.size()); }

size_t count_back(std::string_view text, char c) {
  const size_t last = text.find_last_not_of(c);
  return last == std::string_view::npos ? text.size() : text.size() - 1 - last;
}

// The text behind the last digit, if that is short enough to be a unit; otherwise all of `word`.
std::string_view behind_number(std::string_view word) {
  for (size_t bytes = 0; bytes < word.size() && bytes <= kLongestUnit; ++bytes)
    if (is_ascii_digit(word[word.size() - 1 - bytes])) return word.substr(word.size() - bytes);
  return word;
}

// A letter for the rules between two characters: in these scripts, all of the block.
bool is_letter_inside(char32_t code, unsigned classes) {
  return is_letter(classes) || (code >= 0x900 && code <= 0x97F) || (code >= 0x980 && code <= 0x9FF) ||
         (code >= 0xB80 && code <= 0xCFF) || (code >= 0xD80 && code <= 0xDFF);
}

// How often `piece` stands at the front of `text`.
size_t count_run(std::string_view text, std::string_view piece) {
  size_t count = 0;
  for (; text.starts_with(piece); text.remove_prefix(piece.size())) ++count;
  return count;
}

}  // namespace

WordSplitter::WordSplitter(WordRules rules) : classes_(word_classes()), exceptions_(rules), rules_(rules) {}

void WordSplitter::split(std::string_view text, std::vector<std::string_view>& words) {
  words.clear();
  words_ = &words;
  for (size_t at = 0; at < text.size();) {
    const Chunk chunk = next_chunk(text, at);
    if (!chunk.text.empty() && !take_simple(chunk)) split_chunk(chunk.text);
    at += chunk.text.size() + chunk.space;
  }
}

WordSplitter::Chunk WordSplitter::next_chunk(std::string_view text, size_t begin) const {
  size_t at = begin, length = 0;
  unsigned classes = 0;
  const auto read = [&] {  // the end of the text is white space of no bytes
    const Utf8Char c = at < text.size() ? decode_valid_utf8(text.data() + at) : Utf8Char{' ', 0};
    length = static_cast<size_t>(c.length);
    classes = classes_[c.code];
  };
  do {
    at += length;
    at = find_non_letter(text, at);
    read();
  } while (length > 1 && (classes & (kMark | kIcon | kFront | kSpaceChar)) == 0);
  const size_t letters = at - begin;
  while ((classes & kSpaceChar) == 0) {
    at += length;
    read();
  }
  return {text.substr(begin, at - begin), letters, length};
}

// Takes letters, and letters before one mark, as split_chunk would.
bool WordSplitter::take_simple(const Chunk& chunk) {
  const std::string_view letters = chunk.text.substr(0, chunk.letters);
  if (letters.empty() || letters.size() + 1 < chunk.text.size()) return false;
  if (exceptions_.find(letters) != nullptr) return false;
  if (letters.size() < chunk.text.size()) {
    const char mark = chunk.text.back();
    const bool is_word = mark == '.' ? (classes_[before(letters, letters.size()).code] & kLowerLetter) != 0
                                     : (classes_[static_cast<unsigned char>(mark)] & kMark) != 0;
    if (!is_word || exceptions_.find(chunk.text) != nullptr) return false;
  }
  words_->push_back(letters);
  if (letters.size() < chunk.text.size()) words_->push_back(chunk.text.substr(letters.size()));
  return true;
}

void WordSplitter::split_chunk(std::string_view chunk) {
  ends_.clear();
  const size_t first = words_->size();
  std::string_view word = chunk;
  while (!word.empty()) {
    if (take_exception(word)) {
      word = {};
      break;
    }
    const size_t front = front_mark(word);
    if (front > 0) {
      words_->push_back(word.substr(0, front));
      word.remove_prefix(front);
      if (word.empty() || take_exception(word)) {
        word = {};
        break;
      }
    }
    const size_t end = word.empty() ? 0 : end_mark(word);
    if (end > 0) {
      ends_.push_back(word.substr(word.size() - end));
      word.remove_suffix(end);
    }
    if (front == 0 && end == 0) break;
  }
  if (!word.empty()) {
    if (is_web_address(word))
      words_->push_back(word);
    else
      split_inside(word);
  }
  words_->insert(words_->end(), ends_.rbegin(), ends_.rend());
  if (words_->size() > first + 1) join_exceptions(first);
}

// An exception that the marks inside have split is one again: "z.B." is "z.", "B." and not "z", ".", "B.". If several
// overlap, the one of most words is taken, and the first of equals.
void WordSplitter::join_exceptions(size_t first) {
  struct Run {
    size_t begin, end;  // words
  };
  const std::span<const std::string_view> parts = std::span(*words_).subspan(first);
  std::vector<Run> runs;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    size_t bytes = parts[i].size();
    for (size_t j = i + 1; j < parts.size(); ++j) {
      bytes += parts[j].size();
      if (bytes > exceptions_.longest()) break;
      const std::string_view joined(parts[i].data(), bytes);
      if (exceptions_.find(joined) == nullptr) continue;
      if (!std::all_of(joined.begin(), joined.end(), is_ascii_letter)) runs.push_back({i, j + 1});
    }
  }
  if (runs.empty()) return;
  parts_.assign(parts.begin(), parts.end());
  std::stable_sort(runs.begin(), runs.end(), [](Run a, Run b) { return a.end - a.begin > b.end - b.begin; });
  std::vector<size_t> ends(parts_.size());  // of the run that begins at each word; 0: none does
  std::vector<bool> is_taken(parts_.size());
  for (const Run run : runs) {
    if (is_taken[run.begin] || is_taken[run.end - 1]) continue;  // no run is within a longer one that was taken
    ends[run.begin] = run.end;
    std::fill(is_taken.begin() + static_cast<int64_t>(run.begin), is_taken.begin() + static_cast<int64_t>(run.end),
              true);
  }
  words_->resize(first);
  for (size_t i = 0; i < parts_.size();) {
    const size_t end = std::max(ends[i], i + 1);
    const std::string_view last = parts_[end - 1];
    if (end == i + 1)
      words_->push_back(parts_[i]);
    else
      take_exception({parts_[i].data(), static_cast<size_t>(last.data() + last.size() - parts_[i].data())});
    i = end;
  }
}

bool WordSplitter::take_exception(std::string_view word) {
  const WordExceptions::Cuts* cuts = exceptions_.find(word);
  if (cuts == nullptr) return false;
  size_t begin = 0;
  for (size_t i = 0; i < cuts->size() && (*cuts)[i] > 0; ++i) {
    words_->push_back(word.substr(begin, (*cuts)[i] - begin));
    begin = (*cuts)[i];
  }
  words_->push_back(word.substr(begin));
  return true;
}

size_t WordSplitter::front_mark(std::string_view word) const {
  const Utf8Char c = first_of(word);
  const unsigned classes = classes_[c.code];
  if ((classes & (kMark | kIcon | kFront)) != 0) return static_cast<size_t>(c.length);
  if (c.code == '.') {
    const size_t dots = count_front(word, '.');
    return dots > 1 ? dots : 0;
  }
  if (c.code == '+') return word.size() > 1 && is_ascii_digit(word[1]) ? 0 : 1;
  for (const std::string_view dollars : {"US$", "C$", "A$"})
    if (word.starts_with(dollars)) return dollars.size();
  return 0;
}

size_t WordSplitter::end_mark(std::string_view word) const {
  const Utf8Char last = before(word, word.size());
  const size_t length = static_cast<size_t>(last.length), rest = word.size() - length;
  const unsigned classes = classes_[last.code];
  const Utf8Char previous = rest > 0 ? before(word, rest) : Utf8Char{0, 0};
  const unsigned previous_classes = classes_[previous.code];
  if (last.code == '.') {
    const size_t dots = count_back(word, '.');
    if (dots > 1) return dots;
    if (rest == 0) return 0;
    const bool after_word = is_ascii_digit(static_cast<char>(previous.code)) && previous.code < 0x80;
    if (after_word || (previous_classes & (kLowerLetter | kMark)) != 0) return 1;
    for (const char32_t c : {U'%', U'²', U'-', U'+', U'|'})
      if (previous.code == c) return 1;
    if ((previous_classes & kUpperLetter) == 0 || rest == static_cast<size_t>(previous.length)) return 0;
    return (classes_[before(word, rest - static_cast<size_t>(previous.length)).code] & kUpperLetter) != 0 ? 1 : 0;
  }
  if (last.code == 's' || last.code == 'S') {
    if (previous.code == '\'' || previous.code == U'’') return length + static_cast<size_t>(previous.length);
  }
  if (last.code == 0x2026 && previous.code == 0x2026) return 2 * length;  // two ellipses
  if ((classes & (kMark | kIcon)) != 0 || last.code == 0x2014 || last.code == 0x2013) return length;
  const std::string_view after = behind_number(word);
  if (after.size() == word.size() || after.empty()) return 0;
  if (after == "+") return 1;
  if (after.size() == length && (classes & kFront) != 0 && last.code != 0xA7 && last.code != '=') return length;
  return std::find(std::begin(kUnits), std::end(kUnits), after) != std::end(kUnits) ? after.size() : 0;
}

// The length of a mark between two characters that makes three words of one; 0: none. `at` is not 0, except for marks
// that need nothing before.
size_t WordSplitter::inner_mark(std::string_view word, size_t at) const {
  const Utf8Char c = decode_valid_utf8(word.data() + at);
  const size_t length = static_cast<size_t>(c.length);
  if ((classes_[c.code] & kIcon) != 0 || c.code == 0x2026) return length;
  if (c.code == '.') {
    const size_t dots = count_front(word.substr(at), '.');
    if (dots > 1) return dots;
  }
  const size_t end = at + length;
  if (at == 0 || end >= word.size()) return 0;
  const Utf8Char previous = before(word, at);
  const auto digit = [](char32_t code) { return code >= '0' && code <= '9'; };
  const auto code_at = [&](size_t offset) { return decode_valid_utf8(word.data() + offset).code; };
  const auto letter_at = [&](size_t offset) {
    return offset < word.size() && is_letter_inside(code_at(offset), classes_[code_at(offset)]);
  };
  const bool after_letter = is_letter_inside(previous.code, classes_[previous.code]);
  const bool after_digit = digit(previous.code), letter_next = letter_at(end);
  switch (c.code) {
    case '.':
      return (classes_[previous.code] & (kLowerLetter | kQuote)) != 0 &&
                     (classes_[code_at(end)] & (kUpperLetter | kQuote)) != 0
                 ? 1
                 : 0;
    case ',':
      return after_letter && letter_next ? 1 : 0;
    case ':':
    case '<':
    case '>':
    case '=':
    case '/':
      return (after_letter || after_digit) && letter_next ? 1 : 0;
    case '+':
    case '*':
    case '^':
      return after_digit && (is_ascii_digit(word[end]) || word[end] == '-') ? 1 : 0;
    case '-':
      if (after_digit && (is_ascii_digit(word[end]) || word[end] == '-')) return 1;
      [[fallthrough]];
    case 0x2013:
    case 0x2014:
    case '~': {
      if (!after_letter && !(after_digit && rules_ == WordRules::kEnglish)) return 0;
      if (letter_next) return length;
      const size_t dashes = c.code == '~' || c.code == 0x2013 ? 1 : count_run(word.substr(at), word.substr(at, length));
      const size_t most = c.code == '-' ? 3 : 2;
      return dashes <= most && letter_at(at + dashes * length) ? dashes * length : 0;
    }
    default:
      return 0;
  }
}

void WordSplitter::split_inside(std::string_view word) {
  size_t begin = 0;
  for (size_t at = 0; at < word.size();) {
    if (is_ascii_letter(word[at]) || is_ascii_digit(word[at])) {
      ++at;
      continue;
    }
    const size_t mark = inner_mark(word, at);
    if (mark == 0 || at == 0) {
      at += mark > 0 ? mark : static_cast<size_t>(decode_valid_utf8(word.data() + at).length);
      continue;
    }
    if (at > begin) words_->push_back(word.substr(begin, at - begin));
    words_->push_back(word.substr(at, mark));
    at += mark;
    begin = at;
  }
  if (begin < word.size()) words_->push_back(word.substr(begin));
}

}  // namespace tokamak
