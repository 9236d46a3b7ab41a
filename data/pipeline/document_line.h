// Documents as lines of JSON, which datatrove and others read and write too:
//
//   {"text": "...", "id": "...", "url": "...", "language": "en", "attributes": {"words": 312},
//    "reason": "gopher_quality.words", "metadata": {...}}
//
// All members but the text may be missing. Members of other names are metadata.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/text/document.h"

namespace tokamak {

struct LineProblem {
  enum class Kind { kNoJson, kNoText, kTooDeep };
  Kind kind = Kind::kNoJson;
  std::string what;
};

// Reads lines. Holds buffers, so each thread has its own.
class DocumentLineReader {
 public:
  explicit DocumentLineReader(std::string text_key);
  ~DocumentLineReader();
  DocumentLineReader(const DocumentLineReader&) = delete;
  DocumentLineReader& operator=(const DocumentLineReader&) = delete;

  // Sets the document's members. False, with what is wrong, if the line is no JSON object in UTF-8, has no such text,
  // or is nested too deep; the document then has anything. An `id` may be a number. Other members of another type than
  // ours are metadata.
  bool read(std::string_view line, Document& document, LineProblem& problem);

 private:
  struct Parser;
  std::string text_key_;
  std::unique_ptr<Parser> parser_;
};

// Appends the line of a document, without its line end. Its texts are valid UTF-8. Equal documents have equal lines.
void append_document_line(const Document& document, std::string& out);

void append_json_text(std::string_view text, std::string& out);  // as a string of JSON, in quotes

}  // namespace tokamak
