#include "tokenizer/scan/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/scan/char_map.h"
#include "tokenizer/scan/pattern_parser.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak {

namespace {

constexpr uint32_t kMaxSteps = 10'000'000;   // of one match; see pcre2_set_match_limit
constexpr uint32_t kMaxHeapKiB = 256 << 10;  // of one match, without JIT
constexpr size_t kMaxJitStack = 64 << 20;    // bytes
constexpr size_t kFirstWindow = 256;         // characters
constexpr size_t kUsualWindow = 16384;       // characters

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

std::string pcre2_message(int code) {
  char text[256] = {};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof(text));
  return text;
}

}  // namespace

struct Pattern::Compiled {
  explicit Compiled(std::string_view pattern, const ClassPattern& parsed)
      : source(pattern), classes(parsed.runs), can_be_empty(parsed.can_be_empty) {
    int error = 0;
    size_t at = 0;
    const CompileContext context(pcre2_compile_context_create(nullptr));
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(parsed.regex.data()), parsed.regex.size(), 0, &error, &at,
                             context.get()));
    if (!code)
      fail(Kind::kData, str("pattern '", printable(source, 200), "' cannot be matched exactly as Hugging Face ",
                            "tokenizers matches it: ", pcre2_message(error)));
    // Without JIT, PCRE2 interprets.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    uint32_t characters = 0;
    pcre2_pattern_info(code.get(), PCRE2_INFO_MAXLOOKBEHIND, &characters);
    lookbehind = characters;
  }

  std::string source;
  CharMap classes;
  bool can_be_empty;
  Code code;
  size_t lookbehind = 0;  // characters before a match that it may depend on
};

Pattern::Pattern(std::string_view pattern)
    : compiled_(std::make_unique<const Compiled>(pattern, parse_pattern(pattern))) {}
Pattern::~Pattern() = default;
bool Pattern::can_be_empty() const { return compiled_->can_be_empty; }

// The search sees the text through a window of classes, one byte a character. A match that reaches the window's end is
// partial, and is tried again in a window that begins there or is twice as long.
struct PatternSearch::State {
  State(const Pattern::Compiled& p, std::string_view t, size_t at)
      : pattern(p),
        text(t),
        match_data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context.get(), kMaxSteps);
    pcre2_set_heap_limit(context.get(), kMaxHeapKiB);
    open_window(at);
  }

  // A window in which `at` is the character start_, with as many characters before it as the pattern can see.
  void open_window(size_t at) {
    size_t begin = at;
    for (size_t i = 0; i < pattern.lookbehind && begin > 0; ++i) do
        --begin;
      while (begin > 0 && (text[begin] & 0xC0) == 0x80);
    classes.clear();
    offsets.clear();
    start = 0;
    for (size_t end = begin; end < text.size() && offsets.size() < length + pattern.lookbehind;) {
      if (end == at) start = offsets.size();
      const Utf8Char c = decode_valid_utf8(text.data() + end);
      classes.push_back(static_cast<char>(pattern.classes[c.code]));
      offsets.push_back(static_cast<uint32_t>(end));
      end += static_cast<size_t>(c.length);
      window_end = end;
    }
    if (at >= text.size()) {
      start = offsets.size();
      window_end = text.size();
    }
    offsets.push_back(static_cast<uint32_t>(window_end));
    last = opened = start;
  }

  std::optional<PatternMatch> next() {
    while (true) {
      const bool whole = window_end == text.size();
      const int found = match(whole);
      const size_t* range = pcre2_get_ovector_pointer(match_data.get());
      if (found == PCRE2_ERROR_PARTIAL || found == PCRE2_ERROR_NOMATCH) {
        if (found == PCRE2_ERROR_NOMATCH && whole) return std::nullopt;
        // No match begins before `resume`.
        const size_t resume = found == PCRE2_ERROR_NOMATCH ? classes.size() : std::max(range[0], start);
        if (resume == opened || length < kUsualWindow) length *= 2;
        const bool was_last = resume == last;
        open_window(offsets[resume]);
        if (!was_last) last = kNone;
        continue;
      }
      if (found < 0) refuse(found);
      const size_t begin = range[0];
      const size_t end = range[1];
      if (begin == end && end == last) {
        if (start == classes.size()) {
          if (whole) return std::nullopt;
          length *= 2;
          open_window(offsets[start]);
          continue;
        }
        ++start;
        continue;
      }
      start = last = end;
      return PatternMatch{offsets[begin], offsets[end]};
    }
  }

  int match(bool whole) {
    while (true) {
      const int found = pcre2_match(pattern.code.get(), reinterpret_cast<PCRE2_SPTR>(classes.data()), classes.size(),
                                    start, whole ? 0 : PCRE2_PARTIAL_HARD, match_data.get(), context.get());
      if (found != PCRE2_ERROR_JIT_STACKLIMIT || stack) return found;
      stack.reset(pcre2_jit_stack_create(64 << 10, kMaxJitStack, nullptr));
      if (!stack) return found;
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    }
  }

  [[noreturn]] void refuse(int error) const {
    fail(Kind::kData,
         str("pattern '", printable(pattern.source, 200), "' cannot be matched at byte ", offsets[start],
             " of a text of ", text.size(), " bytes: ", pcre2_message(error)),
         "the pattern backtracks too much on this text");
  }

  static constexpr size_t kNone = SIZE_MAX;
  const Pattern::Compiled& pattern;
  std::string_view text;
  std::string classes;            // of the window's characters
  std::vector<uint32_t> offsets;  // of the window's characters in the text, and of the window's end
  size_t window_end = 0;          // in the text
  size_t start = 0;               // the character of the window where the search goes on
  size_t opened = 0;              // the value of `start` when the window was opened
  size_t last = 0;                // the character where the last match ended, or kNone
  size_t length = kFirstWindow;
  MatchData match_data;
  MatchContext context;
  JitStack stack;
};

PatternSearch::PatternSearch(const Pattern& pattern, std::string_view text, size_t at)
    : state_(std::make_unique<State>(*pattern.compiled_, text, at)) {}
PatternSearch::~PatternSearch() = default;
std::optional<PatternMatch> PatternSearch::next() { return state_->next(); }

namespace {

class PatternScanner : public Scanner {
 public:
  explicit PatternScanner(std::string_view pattern) : pattern_(pattern) {}

  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    size_t count = 0;
    const auto add = [&](size_t end) {
      if (end == at || count == ends.size()) return;
      ends[count++] = static_cast<uint32_t>(end);
      at = end;
    };
    PatternSearch search(pattern_, text, at);
    while (count < ends.size() && at < text.size()) {
      const std::optional<PatternMatch> match = search.next();
      add(match ? match->begin : text.size());
      if (match) add(match->end);
    }
    return count;
  }

 private:
  Pattern pattern_;
};

}  // namespace

std::unique_ptr<Scanner> make_pattern_scanner(std::string_view pattern) {
  return std::make_unique<PatternScanner>(pattern);
}

}  // namespace tokamak
