#include "tokenizer/hf/decode_chain.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/hf/byte_map.h"

namespace tokamak {

namespace {

// How `bytes` (not empty) begin: with a character, with the start of one, or with bytes that are none.
struct Utf8Start {
  enum class Kind { kCharacter, kIncomplete, kInvalid };
  Kind kind;
  size_t length;  // of the character, or of the maximal invalid sequence
};

Utf8Start utf8_start(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return {Utf8Start::Kind::kCharacter, 1};
  if (first < 0xC2 || first > 0xF4) return {Utf8Start::Kind::kInvalid, 1};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Start::Kind::kIncomplete, i};
    const unsigned char low = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (at(i) < low || at(i) > high) return {Utf8Start::Kind::kInvalid, i};
  }
  return {Utf8Start::Kind::kCharacter, length};
}

class TextSink final : public DecodeStage {
 public:
  explicit TextSink(std::string& text) : text_(text) {}
  void put(std::string_view part, bool) override { text_ += part; }
  void finish() override {}

 private:
  std::string& text_;
};

// A step that hands on to the next one.
class ChainedStage : public DecodeStage {
 public:
  explicit ChainedStage(DecodeStage& next) : next_(next) {}
  void finish() override { next_.finish(); }

 protected:
  DecodeStage& next_;
};

// A step that needs whole tokens.
class TokenStage : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void put(std::string_view part, bool token_ends) final {
    if (!token_ends) {
      waiting_ += part;
    } else if (waiting_.empty()) {
      token(part);
    } else {
      token(waiting_.append(part));
      waiting_.clear();
    }
  }

 protected:
  virtual void token(std::string_view text) = 0;

 private:
  std::string waiting_;
};

class JoinBySpaces final : public TokenStage {
 public:
  using TokenStage::TokenStage;

 private:
  void token(std::string_view text) override {
    if (!std::exchange(first_, false)) next_.put(" ", false);
    next_.put(text, true);
  }
  bool first_ = true;
};

// A token whose characters all stand for bytes is these bytes, any other is its own text. The result is one token.
class ByteLevelStage final : public TokenStage {
 public:
  using TokenStage::TokenStage;
  void finish() override {
    std::string text;
    repair_.finish(text);
    next_.put(text, true);
    ChainedStage::finish();
  }

 private:
  void token(std::string_view text) override {
    std::string complete;
    const std::optional<std::string> bytes = bytes_of_printable(text);
    repair_.push(bytes ? std::string_view(*bytes) : text, complete);
    if (!complete.empty()) next_.put(complete, false);
  }
  Utf8Repair repair_;
};

// A run of tokens like <0xE4> is a text if it is valid UTF-8, else one U+FFFD for each of them.
class ByteFallbackStage final : public TokenStage {
 public:
  using TokenStage::TokenStage;
  void finish() override {
    flush();
    ChainedStage::finish();
  }

 private:
  void token(std::string_view text) override {
    if (const int byte = byte_of(text); byte >= 0) {
      bytes_ += static_cast<char>(byte);
      return;
    }
    flush();
    next_.put(text, true);
  }

  // Rust's from_str_radix takes a sign and either case.
  static int byte_of(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    const int high = text[3] == '+' ? 0 : digit(text[3]), low = digit(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
  }

  void flush() {
    if (bytes_.empty()) return;
    if (is_valid_utf8(bytes_)) {
      next_.put(bytes_, true);
    } else {
      for (size_t i = 0; i < bytes_.size(); ++i) next_.put(kReplacementChar, true);
    }
    bytes_.clear();
  }
  std::string bytes_;
};

class FuseStage final : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void put(std::string_view part, bool) override { next_.put(part, false); }
  void finish() override {
    next_.put("", true);
    ChainedStage::finish();
  }
};

class ReplaceStage final : public TokenStage {
 public:
  ReplaceStage(DecodeStage& next, std::string from, std::string to)
      : TokenStage(next), from_(std::move(from)), to_(std::move(to)) {}

 private:
  void token(std::string_view text) override {
    std::string replaced;
    size_t done = 0;
    for (size_t at; (at = text.find(from_, done)) != std::string_view::npos; done = at + from_.size()) {
      replaced.append(text.substr(done, at - done)).append(to_);
    }
    next_.put(replaced.append(text.substr(done)), true);
  }
  std::string from_, to_;  // from_ is not empty
};

// Takes at most `start` of a character from each token's start and `stop` from its end.
class StripStage final : public ChainedStage {
 public:
  StripStage(DecodeStage& next, std::string content, int64_t start, int64_t stop)
      : ChainedStage(next), content_(std::move(content)), start_(start), stop_(stop), start_left_(start) {}

  void put(std::string_view part, bool token_ends) override {
    while (start_left_ > 0 && part.starts_with(content_)) {
      part.remove_prefix(content_.size());
      --start_left_;
    }
    if (!part.empty()) start_left_ = 0;
    std::string text;
    if (stop_ > 0) {
      std::string_view body = part;
      int64_t run = 0;
      for (; body.ends_with(content_); ++run) body.remove_suffix(content_.size());
      if (!body.empty()) {
        append_contents(std::exchange(held_, 0), text);
        text += body;
      }
      held_ += run;
    } else {
      text = part;
    }
    if (token_ends) {
      append_contents(held_ - std::min(held_, stop_), text);
      held_ = 0;
      start_left_ = start_;
    }
    if (token_ends || !text.empty()) next_.put(text, token_ends);
  }

 private:
  void append_contents(int64_t count, std::string& text) const {
    for (; count > 0; --count) text += content_;
  }
  std::string content_;  // one character
  int64_t start_, stop_;
  int64_t start_left_;
  int64_t held_ = 0;  // characters at the end of what came, which may be the token's end
};

class MetaspaceStage final : public ChainedStage {
 public:
  MetaspaceStage(DecodeStage& next, std::string replacement, PrependScheme prepend)
      : ChainedStage(next), replacement_(std::move(replacement)), drops_(prepend != PrependScheme::kOff) {}
  void put(std::string_view part, bool token_ends) override {
    std::string text;
    size_t done = 0;
    for (size_t at; (at = part.find(replacement_, done)) != std::string_view::npos; done = at + replacement_.size()) {
      text.append(part.substr(done, at - done)).append(drops_ ? "" : " ");
    }
    next_.put(text.append(part.substr(done)), token_ends);
    if (token_ends) drops_ = false;
  }

 private:
  std::string replacement_;
  bool drops_;  // in the first token
};

// The suffix of a word becomes a space, that of the last token nothing.
class BpeStage final : public TokenStage {
 public:
  BpeStage(DecodeStage& next, std::string suffix) : TokenStage(next), suffix_(std::move(suffix)) {}
  void finish() override {
    flush("");
    ChainedStage::finish();
  }

 private:
  void token(std::string_view text) override {
    flush(" ");
    held_ = text;
  }
  void flush(std::string_view to) {
    if (!held_) return;
    std::string text;
    size_t done = 0;
    for (size_t at; (at = suffix_.empty() ? std::string::npos : held_->find(suffix_, done)) != std::string::npos;
         done = at + suffix_.size()) {
      text.append(*held_, done, at - done).append(to);
    }
    next_.put(text.append(*held_, done), true);
    held_.reset();
  }
  std::string suffix_;
  std::optional<std::string> held_;
};

std::unique_ptr<DecodeStage> make_stage(const DecoderStep& step, DecodeStage& next) {
  switch (step.kind) {
    case DecoderStep::Kind::kByteLevel:
      return std::make_unique<ByteLevelStage>(next);
    case DecoderStep::Kind::kByteFallback:
      return std::make_unique<ByteFallbackStage>(next);
    case DecoderStep::Kind::kFuse:
      return std::make_unique<FuseStage>(next);
    case DecoderStep::Kind::kReplace:
      return std::make_unique<ReplaceStage>(next, step.pattern.text, step.content);
    case DecoderStep::Kind::kStrip:
      return std::make_unique<StripStage>(next, step.content, step.start, step.stop);
    case DecoderStep::Kind::kMetaspace:
      return std::make_unique<MetaspaceStage>(next, step.replacement, step.prepend);
    case DecoderStep::Kind::kBpe:
      return std::make_unique<BpeStage>(next, step.suffix);
  }
  return nullptr;
}

}  // namespace

void Utf8Repair::push(std::string_view bytes, std::string& text) {
  if (!rest_.empty()) {
    // Finish the character that has begun, byte by byte: it ends within three.
    while (!rest_.empty() && !bytes.empty()) {
      rest_ += bytes[0];
      bytes.remove_prefix(1);
      const std::string now = std::exchange(rest_, "");
      push(now, text);
    }
  }
  size_t plain = 0;  // bytes of whole characters at the front
  while (plain < bytes.size()) {
    const Utf8Start start = utf8_start(bytes.substr(plain));
    if (start.kind == Utf8Start::Kind::kCharacter) {
      plain += start.length;
      continue;
    }
    text += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    plain = 0;
    if (start.kind == Utf8Start::Kind::kIncomplete) {
      rest_ = bytes;
      return;
    }
    text += kReplacementChar;
    bytes.remove_prefix(start.length);
  }
  text += bytes;
}

void Utf8Repair::finish(std::string& text) {
  if (!rest_.empty()) text += kReplacementChar;
  rest_.clear();
}

DecodeChain::DecodeChain(const std::optional<std::vector<DecoderStep>>& steps) {
  stages_.push_back(std::make_unique<TextSink>(text_));
  if (!steps) stages_.push_back(std::make_unique<JoinBySpaces>(*stages_.back()));
  for (size_t i = steps ? steps->size() : 0; i-- > 0;) stages_.push_back(make_stage((*steps)[i], *stages_.back()));
}

std::string DecodeChain::take() { return std::exchange(text_, ""); }

std::string DecodeChain::push(std::string_view piece) {
  stages_.back()->put(piece, true);
  return take();
}

std::string DecodeChain::finish() {
  stages_.back()->finish();
  return take();
}

}  // namespace tokamak
