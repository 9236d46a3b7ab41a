// Tokenizes text files into a data set, or into a training set and a held-out one. The output depends on the text, the
// tokenizer and the options alone, never on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/staged.h"
#include "data/manifest.h"
#include "data/text/document.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

enum class DocumentBegin { kNothing, kBos };

struct TokenizeOptions {
  std::vector<std::string> inputs;  // .txt and .jsonl files, plain, .gz or .zst, or directories of them
  std::string output;               // the data set; with a validation part: OUTPUT/train and OUTPUT/validation
  DocumentBegin begin = DocumentBegin::kNothing;
  Existing existing = Existing::kRefuse;  // what to do with a non-empty output directory
  std::string tool = "tokamak";           // recorded in the manifest
  double validation_fraction = 0;
  int64_t seed = 1234;
  std::string text_key = "text";
  int64_t max_document_bytes = 1 << 20;
  int64_t shard_tokens = 4'000'000'000;
  int64_t threads = 0;
  int64_t batch_bytes = 2 << 20;  // of text that a thread processes at once; does not change the output

  template <class Visitor>
  void fields(Visitor& v) {
    v("validation", validation_fraction, "share of the documents to hold out, like 5% or 0.05");
    v("seed", seed, "decides which documents are held out");
    v("text_key", text_key, "member of each .jsonl line that holds the text");
    v("max_document_bytes", max_document_bytes, "cut longer documents of .txt files at a blank line; bytes, 0: never");
    v("shard_tokens", shard_tokens, "close a shard at the first document end past this many tokens");
    v("threads", threads, "threads that encode; 0: all cores");
  }
};

struct TokenizeProgress {
  int64_t bytes = 0;        // bytes of text processed
  int64_t total_bytes = 0;  // of all input files
  int64_t documents = 0;
  int64_t tokens = 0;
};

// Warnings about the text of one input file.
struct FileFaults {
  std::string path;
  TextFaults faults;
};

struct TokenizeReport {
  int64_t files = 0;
  int64_t documents = 0;           // written
  int64_t empty = 0;               // skipped: white space only
  int64_t bytes = 0;               // of the input files
  std::vector<FileFaults> faults;  // only of files with faults, in input order
  Manifest train;                  // the whole data set if nothing is held out
  std::optional<Manifest> validation;
};

// Whether document `number`, counted over all inputs in order, is held out.
bool held_out(int64_t seed, int64_t number, double fraction);

// Error(kData): unreadable text, a part without documents. Error(kConfig): options out of range, output directory in
// use. Only a directory with a data set is ever replaced. After an error nothing is left at `output`. `progress` is
// called after each batch of about `batch_bytes`.
TokenizeReport tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                        const std::function<void(const TokenizeProgress&)>& progress = {});

}  // namespace tokamak
