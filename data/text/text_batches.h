// Documents in batches, for several threads. A thread reads the lines of a plain .jsonl file itself. The rest is read
// in sequence by the caller: .txt files, because their documents depend on those before, and compressed files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/text/document.h"
#include "data/text/text_reader.h"

namespace tokamak {

class TextBatches {
 public:
  // `files` must outlive this, the batches and the documents. A batch has about `batch_bytes` of text, which does not
  // change the documents or their order. `max_document_bytes` as in TextReader.
  TextBatches(const std::vector<TextFile>& files, int64_t max_document_bytes, int64_t batch_bytes);

  // The documents of the next batch, to be read on any one thread; nullptr after the last batch. A batch may have no
  // documents. Texts of white space are skipped.
  std::unique_ptr<DocumentReader> next();
  int64_t bytes_read() const;  // of the files, in the batches handed out

 private:
  std::unique_ptr<DocumentReader> next_lines(const TextFile& file);
  std::vector<Document> next_documents(const TextFile& file);
  void finish_file();

  const std::vector<TextFile>& files_;
  int64_t max_document_bytes_;
  int64_t batch_bytes_;
  size_t at_ = 0;                     // index of the current file
  std::unique_ptr<FileReader> file_;  // the current file, if it is read in sequence
  int64_t offset_ = 0;                // in the current file, if threads read its lines
  int64_t bytes_done_ = 0;            // of the files before
};

}  // namespace tokamak
