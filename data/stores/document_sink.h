// Writes documents in the formats of other programs, in one pass and in bounded memory. Files go to a directory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/manifest.h"

namespace tokamak {

class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void add(std::span<const int32_t> ids) = 0;  // of the current document
  virtual void end_document() = 0;
  virtual void finish() = 0;  // all files are on disk
};

struct SinkOptions {
  std::string directory;     // exists
  Manifest head;             // says vocabulary (0: unknown), type of tokens and tokenizer
  int64_t shard_tokens = 0;  // a file is closed at the first document end past this many tokens
  int32_t delimiter = -1;    // of llm.c's documents
};

// A data set of ours. Needs the vocabulary.
std::unique_ptr<DocumentSink> make_tokamak_sink(const SinkOptions& options);
// part-00000.bin and .idx, ...: one sequence a document.
std::unique_ptr<DocumentSink> make_megatron_sink(const SinkOptions& options);
// 00000_unshuffled.ds, .ds.index and .ds.metadata, ...
std::unique_ptr<DocumentSink> make_datatrove_sink(const SinkOptions& options);
// tokens_train_000001.bin, ...; cut after exactly `shard_tokens`, 2^31 - 1 at most. The delimiter goes before each
// document: one at its end moves there, and one that is nowhere is added.
std::unique_ptr<DocumentSink> make_llmc_sink(const SinkOptions& options);

}  // namespace tokamak
