// Reads documents from text files, in file order. A line of a .jsonl file is a document. A .txt file is one document,
// or several separated by form feeds (U+000C).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/text/document.h"
#include "data/text/text_files.h"

namespace tokamak {

// Each format has an implementation.
class FileReader : public DocumentReader {
 public:
  virtual int64_t file_position() const = 0;  // bytes of the file that were read
};

// `max_document_bytes` as in TextReader.
std::unique_ptr<FileReader> open_text_file(const TextFile& file, int64_t max_document_bytes);
bool is_blank(const Document& document);  // white space only: such a document is skipped
void remove_byte_order_mark(std::string& text);

class TextReader {
 public:
  // `files` must outlive the reader and its documents. Documents of .txt files are cut to max_document_bytes (0: no
  // limit): after the last blank line that fits, else after the last line, else between two characters.
  TextReader(const std::vector<TextFile>& files, int64_t max_document_bytes);

  bool next(Document& document);  // false after the last; skips texts of white space
  int64_t bytes_read() const;     // of the files

 private:
  const std::vector<TextFile>& files_;
  int64_t max_document_bytes_;
  size_t opened_ = 0;  // files
  std::unique_ptr<FileReader> file_;
  int64_t bytes_done_ = 0;  // of the files before file_
};

// Replaces the bytes of a document by its text and counts faults. A .txt file becomes text with LF for each CR LF, as
// in Python. A line of a .jsonl file becomes its member `json_key`, unchanged. Error(kData), with file and line, if the
// line is not JSON or has no such text. Holds a buffer, so each thread has its own.
class TextParser {
 public:
  explicit TextParser(std::string json_key) : json_key_(std::move(json_key)) {}
  void parse(Document& document);

 private:
  std::string json_key_;
  std::string text_;
};

inline void parse_text(Document& document, const std::string& json_key) { TextParser(json_key).parse(document); }

// The lines of all documents, without '\n'.
class TextLines {
 public:
  // `files` must outlive this. `json_key` is that of TextParser.
  TextLines(const std::vector<TextFile>& files, std::string json_key);

  bool next(std::string& line);  // false after the last

 private:
  TextReader reader_;
  TextParser parser_;
  Document document_;
  size_t at_ = 0;  // offset of the next line in document_.text; none is left if it is at least the size
};

}  // namespace tokamak
