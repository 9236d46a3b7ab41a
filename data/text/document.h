// A text on its way from a file into a data set, with its source and faults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/text_files.h"

namespace tokamak {

// Bytes that plain text should not have: the file may be binary, or have line ends of Windows.
struct TextFaults {
  int64_t invalid_bytes = 0;  // not UTF-8; the encoder replaces each by U+FFFD
  int64_t nul_bytes = 0;
  int64_t crlf_line_ends = 0;  // pairs of CR LF, each replaced by LF

  bool any() const { return invalid_bytes > 0 || nul_bytes > 0 || crlf_line_ends > 0; }
  void operator+=(const TextFaults& other) {
    invalid_bytes += other.invalid_bytes;
    nul_bytes += other.nul_bytes;
    crlf_line_ends += other.crlf_line_ends;
  }
};

// A value that a stage has found, by name: "gopher_quality.words", "language_score".
struct DocumentValue {
  std::string name;
  double value = 0;
};

struct Document {
  std::string text;                // the bytes as read, until parse_text()
  const TextFile* file = nullptr;  // its source, in the list of the reader
  int64_t offset = 0;              // of a line of a .jsonl file: where it begins in the text of the file
  int64_t line = 0;                // its number in the file, from 1; 0: not counted yet, see place_of()
  TextFaults faults;
  int64_t text_bytes = 0;    // of the text, which is gone once it is encoded
  std::vector<int32_t> ids;  // the tokens, once encoded
  bool dropped = false;      // a stage has dropped this document

  // For data/pipeline:
  std::string id;        // of the corpus, or FILE:NUMBER
  bool is_page = false;  // the text is HTML
  std::string url;
  std::string language;               // "en"; "": unknown
  std::string metadata;               // other members of its line, as one JSON object; "": none
  std::vector<DocumentValue> values;  // in the order in which they were found
  std::string reason;                 // the rule that dropped it
};

// Documents in sequence: of a file, or of a part of one.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  virtual bool next(Document& document) = 0;  // sets text and source; false after the last
};

// The document's source, for errors: "FILE:LINE", or "FILE" of a .txt file. Reads the file to count lines if necessary.
std::string place_of(const Document& document);

}  // namespace tokamak
