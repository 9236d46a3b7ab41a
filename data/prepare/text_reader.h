// Reads documents from text files, in file order. In a .jsonl file each line is one. A .txt file is one document,
// or several separated by form feeds (U+000C); a document longer than the limit is cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/lines.h"
#include "data/prepare/text_files.h"

namespace tokamak {

// A document as read. Parsing JSON takes longer than reading, so text_of() does it, on any thread.
struct RawDocument {
  std::string bytes;
  const TextFile* file = nullptr;  // points into the reader's list of files
  int64_t line = 0;                // of a .jsonl file, from 1
};

// Splits one .txt file into documents.
class PlainTextReader {
 public:
  // A document longer than max_bytes is cut after the last blank line within them, else after the last line, else
  // between two characters. 0: no limit.
  PlainTextReader(const std::string& path, int64_t max_bytes);
  bool next(std::string& document);  // false at the end of the file

 private:
  bool fill();

  InputFile file_;
  size_t max_bytes_;
  std::string buffer_;
  size_t at_ = 0;       // start of the next document in buffer_
  size_t scanned_ = 0;  // no form feed between at_ and here
  int64_t offset_ = 0;  // file offset of the data after buffer_
};

class TextReader {
 public:
  // `files` must outlive the reader and its documents.
  TextReader(const std::vector<TextFile>& files, int64_t max_document_bytes);

  bool next(RawDocument& document);                   // false after the last; lines of white space are no documents
  int64_t bytes_read() const { return bytes_read_; }  // approximate: of the returned documents

 private:
  const std::vector<TextFile>& files_;
  int64_t max_document_bytes_;
  size_t opened_ = 0;  // files
  std::optional<PlainTextReader> plain_;
  std::optional<LineReader> lines_;
  int64_t bytes_read_ = 0;
};

// What in a text says that it is none, or was written elsewhere.
struct TextFaults {
  int64_t invalid_bytes = 0;  // no UTF-8; encoding replaces them
  int64_t nul_bytes = 0;
  int64_t crlf_line_ends = 0;  // that became LF

  bool any() const { return invalid_bytes > 0 || nul_bytes > 0 || crlf_line_ends > 0; }
  void operator+=(const TextFaults& other);
};

// The text of a document: of a .txt file, with LF for each CR LF, as Python reads text; or member `json_key` of a JSON
// object, unchanged. Error(kData) naming file and line if the line is not JSON or has no such text.
std::string text_of(RawDocument&& document, const std::string& json_key, TextFaults* faults = nullptr);

}  // namespace tokamak
