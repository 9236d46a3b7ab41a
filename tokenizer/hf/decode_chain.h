// Pieces to text: the steps of a tokenizer.json's `decoder`, as a stream. Each step hands on what can no longer change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/spec.h"

namespace tokamak {

// Bytes to UTF-8: each maximal invalid sequence becomes one U+FFFD, as WHATWG and Rust's from_utf8_lossy have it.
class Utf8Repair {
 public:
  void push(std::string_view bytes, std::string& text);  // appends what is complete; keeps at most 3 bytes
  void finish(std::string& text);

 private:
  std::string rest_;
};

// One step. A token may come in several parts.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void put(std::string_view part, bool token_ends) = 0;
  virtual void finish() = 0;
};

class DecodeChain {
 public:
  // No steps (nullopt): the pieces, joined by spaces.
  explicit DecodeChain(const std::optional<std::vector<DecoderStep>>& steps);
  DecodeChain(const DecodeChain&) = delete;
  DecodeChain& operator=(const DecodeChain&) = delete;

  // The text that became final with this token, and with the end.
  std::string push(std::string_view piece);
  std::string finish();

 private:
  std::string take();

  std::string text_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // the first is the last step
};

}  // namespace tokamak
