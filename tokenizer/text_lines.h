// The lines of a corpus that a tokenizer is trained on, one after the other, from .txt files (a line is a line) and
// .jsonl files (a line is a JSON object; its text is cut into lines, so that both give the same tokenizer).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace tokamak {

// The lines of one file, without their '\n', read in blocks.
class LineReader {
 public:
  explicit LineReader(std::string path) : file_(std::move(path), Kind::kData) {}

  bool next(std::string& line);                         // false at the end of the file
  int64_t line_number() const { return line_number_; }  // of the line last read, from 1
  const std::string& path() const { return file_.path(); }

 private:
  bool fill();

  InputFile file_;
  std::string block_;
  size_t at_ = 0;       // in block_
  int64_t offset_ = 0;  // of what follows block_ in the file
  int64_t line_number_ = 0;
};

class TextLines {
 public:
  // Error(kData) if a file is neither .txt nor .jsonl; `json_key` is the member that holds the text.
  TextLines(std::vector<std::string> paths, std::string json_key);

  // False after the last line of the last file. Error(kData) naming file and line where a line is not JSON, no object,
  // or without text.
  bool next(std::string& line);

 private:
  bool next_document(std::string& text);

  std::vector<std::string> paths_;
  std::string json_key_;
  size_t opened_ = 0;  // files
  std::optional<LineReader> reader_;
  std::string document_;
  size_t at_ = 0;  // in document_; past its size when it has no more lines
};

}  // namespace tokamak
