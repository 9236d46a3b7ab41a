// Text as a source of training: it is tokenized once, into a data set in a cache, before a run begins. Samples are then
// those of an ordinary data set, so sample k stays a pure function: tokens made during the run would depend on its
// past. A data set is complete or absent. Runs that share a cache make it once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/prepare/tokenize.h"
#include "data/text/text_files.h"

namespace tokamak {

// The directory of the data sets that a run makes of text.
std::string text_cache(const DataOptions& data, const std::string& output_dir);

struct TextSource {
  std::vector<TextFile> files;
  int64_t bytes = 0;  // of the files, compressed or not
  // Its directory in the cache. The name is a hash of the tokenizer and of each file's name, size, time of change and
  // blocks at fixed places. So other text and another tokenizer have other data sets, and old ones stay.
  std::string data_set;
  bool is_made = false;  // the data set is there
};

// Finds the files and reads the tokenizer, not the text. Error(kConfig) if the source has no tokenizer, Error(kData) if
// a file or the tokenizer cannot be read.
TextSource find_text_source(const SourceOptions& source, const std::string& cache);

// Writes the data set unless it is made; each document ends in the EOS token. Waits while another process writes it,
// and calls `progress` meanwhile, without bytes. The report is empty if nothing was to do. Errors as tokenize().
std::optional<TokenizeReport> make_data_set(const SourceOptions& source, const TextSource& text,
                                            const std::string& tool,
                                            const std::function<void(const TokenizeProgress&)>& progress);

struct TextEstimate {
  int64_t tokens = 0;
  int64_t bytes = 0;  // of the data set
};

// Tokenizes the first documents of at most `files` files, some MiB in all, and extrapolates. Errors as tokenize().
TextEstimate estimate_data_set(const SourceOptions& source, const TextSource& text, int64_t files = 4);

}  // namespace tokamak
