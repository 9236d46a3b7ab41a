// A part of a corpus -> documents. Items that are no document come too, dropped, with a reason ("input.no_json"), so
// that all are counted. Only a file that is cut or damaged is an error.
#pragma once

#include <memory>
#include <string>

#include "data/pipeline/corpus.h"
#include "data/text/document.h"

namespace tokamak {

struct CorpusReadOptions {
  std::string text_key = "text";
  int64_t document_bytes = int64_t{8} << 20;  // longer ones are dropped
};

class CorpusReader {
 public:
  virtual ~CorpusReader() = default;
  // False after the last. Text is valid UTF-8; a page's is HTML. `text_bytes` are those that were read.
  virtual bool next(Document& document) = 0;
  virtual int64_t file_position() const = 0;
};

std::unique_ptr<CorpusReader> open_corpus_part(const CorpusFile& file, ByteRange bytes,
                                               const CorpusReadOptions& options);

}  // namespace tokamak
