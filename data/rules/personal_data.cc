#include "data/rules/personal_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/rules/ascii.h"

namespace tokamak {

namespace {

constexpr std::array<std::string_view, 2> kMails = {"email@example.com", "firstname.lastname@example.org"};
// FineWeb's: nobody answered at these when they were chosen.
constexpr std::array<std::string_view, 6> kIps = {"22.214.171.124", "126.96.36.199",  "188.8.131.52",
                                                  "184.108.40.206", "220.127.116.11", "18.104.22.168"};
constexpr std::string_view kPhone = "555-0100";

bool is_alnum(char c) { return is_ascii_digit(c) || is_ascii_letter(c); }
bool is_local(char c) {
  return is_alnum(c) || c == '.' || std::string_view("!#$%&'*+/=?^_`{|}~-").find(c) != std::string_view::npos;
}

// A part of the text that is personal data: [begin, end).
struct Found {
  size_t begin = std::string_view::npos, end = 0;
  bool is_there() const { return begin != std::string_view::npos; }
};

// The first mail address whose "@" is at `from` or after; not before `least`.
Found find_mail(std::string_view text, size_t from, size_t least) {
  for (size_t at = text.find('@', from); at != std::string_view::npos; at = text.find('@', at + 1)) {
    size_t begin = at;
    while (begin > least && is_local(text[begin - 1])) --begin;
    while (begin < at && !is_alnum(text[begin])) ++begin;  // quotation marks and the like
    if (begin == at || text[at - 1] == '.' || text.substr(begin, at - begin).find("..") != std::string_view::npos)
      continue;
    size_t end = at + 1, last_label = 0;
    int labels = 0;
    while (end < text.size() && is_alnum(text[end])) {
      last_label = end;
      while (end < text.size() && (is_alnum(text[end]) || text[end] == '-')) ++end;
      while (text[end - 1] == '-') --end;
      ++labels;
      if (end + 1 >= text.size() || text[end] != '.' || !is_alnum(text[end + 1])) break;
      ++end;
    }
    if (labels >= 2 && end > last_label) return {begin, end};
  }
  return {};
}

// As Python's ip_address(...).is_global for IPv4 (RFC 6890).
bool is_public(const std::array<int, 4>& ip) {
  const auto [a, b, c, d] = ip;
  if (a == 0 || a == 10 || a == 127 || a >= 240 || (a == 100 && b >= 64 && b < 128) || (a == 169 && b == 254))
    return false;
  if ((a == 172 && b >= 16 && b < 32) || (a == 192 && b == 168) || (a == 198 && (b == 18 || b == 19))) return false;
  if (a == 192 && b == 0 && c == 0) return d == 9 || d == 10;
  return !((a == 192 && b == 0 && c == 2) || (a == 198 && b == 51 && c == 100) || (a == 203 && b == 0 && c == 113));
}

// The first public IPv4 address that begins at `from` or after.
Found find_ip(std::string_view text, size_t from) {
  for (size_t dot = text.find('.', from); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
    size_t begin = dot;
    while (begin > from && dot - begin < 3 && is_ascii_digit(text[begin - 1])) --begin;
    std::array<int, 4> ip{};
    size_t at = begin, parts = 0;
    for (; parts < 4; ++parts) {
      int value = 0, digits = 0;
      while (at < text.size() && digits < 3 && is_ascii_digit(text[at]) && value * 10 + (text[at] - '0') < 256)
        value = value * 10 + (text[at++] - '0'), ++digits;
      if (digits == 0) break;
      ip[parts] = value;
      if (parts < 3 && (at >= text.size() || text[at++] != '.')) break;
    }
    if (parts == 4 && is_public(ip)) return {begin, at};
  }
  return {};
}

// (123) 456-7890, 123.456.7890 and the like.
Found find_phone(std::string_view text, size_t from) {
  for (size_t i = from; i < text.size(); ++i) {
    if (!is_ascii_digit(text[i]) || (i > 0 && is_ascii_digit(text[i - 1]))) continue;
    size_t at = i;
    const auto take_digits = [&](int count) {
      int taken = 0;
      while (taken < count && at < text.size() && is_ascii_digit(text[at])) ++at, ++taken;
      return taken == count;
    };
    const auto take_marks = [&](std::string_view marks, size_t most) {
      for (size_t n = 0; n < most && at < text.size() && marks.find(text[at]) != std::string_view::npos; ++n) ++at;
    };
    const bool begins = take_digits(3);
    if (!begins) continue;
    take_marks(")", 1);
    take_marks("-. ", 3);
    if (!take_digits(3)) continue;
    take_marks("-. ", 1);
    if (!take_digits(4) || (at < text.size() && is_ascii_digit(text[at]))) continue;
    return {i > from && text[i - 1] == '(' ? i - 1 : i, at};
  }
  return {};
}

}  // namespace

PersonalDataCounts mask_personal_data(std::string_view text, const PersonalDataOptions& options, std::string& out) {
  out.clear();
  PersonalDataCounts counts;
  const auto mask = [&](auto find, auto replacement, int64_t& count) {
    const std::string source = std::exchange(out, {});
    size_t at = 0;
    for (Found found = find(std::string_view(source), at); found.is_there();
         found = find(std::string_view(source), at)) {
      out.append(source, at, found.begin - at);
      out += replacement(count++);
      at = found.end;
    }
    out.append(source, at);
  };
  out = text;
  const auto in_turn = [](const auto& list) {
    return [&list](int64_t i) { return list[static_cast<size_t>(i) % list.size()]; };
  };
  if (options.mail)
    mask([](std::string_view s, size_t at) { return find_mail(s, at, at); }, in_turn(kMails), counts.mails);
  if (options.ip) mask([](std::string_view s, size_t at) { return find_ip(s, at); }, in_turn(kIps), counts.ips);
  if (options.phone)
    mask([](std::string_view s, size_t at) { return find_phone(s, at); }, [](int64_t) { return kPhone; },
         counts.phones);
  return counts;
}

}  // namespace tokamak
