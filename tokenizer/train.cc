#include "tokenizer/train.h"

#include <sentencepiece_trainer.h>

#include <array>
#include <charconv>
#include <exception>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "tokenizer/model_proto.h"

namespace tokamak {

namespace {

constexpr std::string_view kReserved = "\xE2\x96\x85";  // U+2585, the trainer's mark for rare characters
constexpr int64_t kSpecialPieces = 3 + 256;             // <unk>, <s>, </s> and the bytes

// The trainer packs positions in a line into 16 bits each and fails on longer lines
// (https://github.com/google/sentencepiece/issues/340).
constexpr int64_t kLongestLine = 32767;

void require(bool condition, const std::string& what) {
  if (!condition) fail(Kind::kConfig, str("tokenizer training: ", what));
}

void check_symbols(const std::vector<std::string>& symbols) {
  std::set<std::string> seen = {"<unk>", "<s>", "</s>"};
  for (const std::string& symbol : symbols) {
    const std::string name = str("user_defined_symbols: '", symbol, "'");
    require(!symbol.empty(), "user_defined_symbols: a symbol is empty");
    require(is_valid_utf8(symbol), name + " is not UTF-8");
    require(symbol.find('\0') == std::string::npos, name + " has a NUL byte");
    require(symbol.find(' ') == std::string::npos, name + " has a space; write it as \xE2\x96\x81 (U+2581)");
    require(byte_of_piece(symbol) < 0, name + " is the name of a byte piece");
    require(seen.insert(symbol).second, name + " is there twice, or is a special piece");
  }
}

void check(const TokenizerTrainOptions& o) {
  const auto symbols = std::ssize(o.user_defined_symbols);
  require(o.vocab_size > kSpecialPieces + symbols && o.vocab_size <= (1 << 24),
          str("vocab_size=", o.vocab_size, " must be above ", kSpecialPieces + symbols, " and at most ", 1 << 24));
  require(o.character_coverage >= 0.98 && o.character_coverage <= 1,
          str("character_coverage=", o.character_coverage, " must lie in 0.98 to 1"));
  require(o.input_sentence_size == 0 || o.input_sentence_size > 100,
          str("input_sentence_size=", o.input_sentence_size, " must be 0 or above 100"));
  require(o.max_sentence_length >= 10 && o.max_sentence_length <= kLongestLine,
          str("max_sentence_length=", o.max_sentence_length, " must lie in 10 to ", kLongestLine));
  require(o.max_piece_length >= 1 && o.max_piece_length <= 512,
          str("max_piece_length=", o.max_piece_length, " must lie in 1 to 512"));
  check_symbols(o.user_defined_symbols);
}

// Feeds lines to SentencePiece. Exceptions must not propagate through it: one is kept until it has returned.
class Lines : public sentencepiece::SentenceIterator {
 public:
  Lines(const NextLine& next, int64_t longest, TokenizerTrainReport& report)
      : next_(next), longest_(longest), report_(report) {
    Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override {
    if (exception_ == nullptr) return {};
    return {sentencepiece::util::StatusCode::kInternal, "cannot read the text"};
  }

  void Next() override {
    try {
      while ((done_ = !next_(line_)) == false) {
        if (usable()) return;
      }
    } catch (...) {
      exception_ = std::current_exception();
      done_ = true;
    }
  }

  void rethrow() const {
    if (exception_ != nullptr) std::rethrow_exception(exception_);
  }

 private:
  // Skips the lines that the trainer would skip, and counts them.
  bool usable() {
    ++report_.lines;
    report_.bytes += std::ssize(line_);
    const bool too_long = std::ssize(line_) > longest_;
    const bool reserved = !too_long && line_.find(kReserved) != std::string::npos;
    report_.too_long += too_long ? 1 : 0;
    report_.with_reserved += reserved ? 1 : 0;
    return !line_.empty() && !too_long && !reserved;
  }

  const NextLine& next_;
  int64_t longest_;
  TokenizerTrainReport& report_;
  std::string line_;
  bool done_ = false;
  std::exception_ptr exception_;
};

std::string exactly(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

// The trainer reads lists as CSV.
std::string csv(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) {
    std::string text = "\"";
    for (const char c : word) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    quoted.push_back(text + "\"");
  }
  return join(quoted, ",");
}

std::unordered_map<std::string, std::string> arguments(const TokenizerTrainOptions& o) {
  const auto boolean = [](bool value) { return std::string(value ? "true" : "false"); };
  std::unordered_map<std::string, std::string> args = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(o.vocab_size)},
      {"character_coverage", exactly(o.character_coverage)},
      {"input_sentence_size", std::to_string(o.input_sentence_size)},
      {"shuffle_input_sentence", "true"},
      {"max_sentence_length", std::to_string(o.max_sentence_length)},
      {"max_sentencepiece_length", std::to_string(o.max_piece_length)},
      {"split_digits", boolean(o.split_digits)},
      {"allow_whitespace_only_pieces", "true"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "true"},
      {"remove_extra_whitespaces", "false"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      // Not an option: it is stored in the model, whose bytes must not depend on the machine. It would parallelise only
      // normalisation, a hundredth of the time.
      {"num_threads", "16"},
      // Not only for silence: if no pair can merge, the trainer's log statement reads past an empty vector.
      {"minloglevel", "3"},
  };
  if (!o.user_defined_symbols.empty()) args["user_defined_symbols"] = csv(o.user_defined_symbols);
  return args;
}

// SentencePiece's messages start with its source line and the failed expression: "file(12) [a == b] text".
std::string without_place(std::string message) {
  const size_t end = message.rfind("] ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

int64_t number_after(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  int64_t number = -1;
  if (at != std::string::npos) {
    const char* begin = text.data() + at + before.size();
    std::from_chars(begin, text.data() + text.size(), number);
  }
  return number;
}

[[noreturn]] void fail_training(const std::string& message, const TokenizerTrainOptions& o) {
  const int64_t most = number_after(message, "value <= ");
  if (most >= 0) {
    fail(Kind::kData, str("the text gives only ", most, " pieces, fewer than vocab_size=", o.vocab_size),
         str("set vocab_size to at most ", most, ", or train on more text"));
  }
  const int64_t least = number_after(message, str("required_chars. ", o.vocab_size, " vs "));
  if (least >= 0) {
    fail(Kind::kData, str("vocab_size=", o.vocab_size, " has no room for the text's alphabet: ", least, " pieces"),
         str("set vocab_size well above ", least, ", or lower character_coverage=", o.character_coverage));
  }
  fail(Kind::kData, str("SentencePiece cannot train the tokenizer: ", without_place(message)));
}

}  // namespace

TokenizerTrainReport train_tokenizer(const NextLine& next, const TokenizerTrainOptions& options,
                                     const std::string& output) {
  check(options);
  TokenizerTrainReport report;
  Lines lines(next, options.max_sentence_length, report);
  lines.rethrow();
  if (lines.done()) {
    fail(Kind::kData, str("there is no text to train a tokenizer on: of ", report.lines, " lines, ", report.too_long,
                          " are longer than max_sentence_length=", options.max_sentence_length, ", ",
                          report.with_reserved, " contain U+2585, the others are empty"));
  }
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments(options), &lines, &model);
  lines.rethrow();
  if (!status.ok()) fail_training(status.error_message(), options);
  check_supported(parse_model_proto(model, output), output);
  write_text_atomically(output, model, Kind::kData);
  report.hash = xxh3_128_hex(std::as_bytes(std::span(model.data(), model.size())));
  return report;
}

}  // namespace tokamak
