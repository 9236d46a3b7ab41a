// Reads the lines of a tokenizer's training corpus from .txt and .jsonl files. A line of .jsonl is a JSON object, whose
// text is split into lines, so both formats give the same tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lines.h"

namespace tokamak {

class TextLines {
 public:
  // Error(kData) if a file is neither .txt nor .jsonl; `json_key` is the member that holds the text.
  TextLines(std::vector<std::string> paths, std::string json_key);

  // False after the last line of the last file. Error(kData) naming file and line if a line is not JSON, not an object,
  // or has no text.
  bool next(std::string& line);

 private:
  bool next_document(std::string& text);

  std::vector<std::string> paths_;
  std::string json_key_;
  size_t opened_ = 0;  // files
  std::optional<LineReader> reader_;
  std::string document_;
  size_t at_ = 0;  // position in document_; past its size when it has no more lines
};

}  // namespace tokamak
