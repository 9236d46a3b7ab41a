// Text as a source of training: it is tokenized once, into a data set in a cache, before a run begins. Samples are then
// those of an ordinary data set, so sample k stays a pure function: tokens made during the run would depend on its
// past.
#pragma once

#include <functional>
#include <string>

#include "data/options.h"
#include "data/prepare/tokenize.h"

namespace tokamak {

// Format jsonl, or a path that ends in .jsonl, .jsonl.gz or .jsonl.zst.
bool is_text_source(const SourceOptions& source);

// The directory of the source's data set in `cache`. Its name is a hash of the tokenizer and of each file's name, size,
// time of change and blocks at fixed places. Error(kConfig) if the source has no tokenizer.
std::string cached_data_set(const SourceOptions& source, const std::string& cache);

// Writes the data set unless it is complete; each document ends in the EOS token. Errors as tokenize().
void tokenize_source(const SourceOptions& source, const std::string& data_set, const std::string& tool,
                     const std::function<void(const TokenizeProgress&)>& progress);

}  // namespace tokamak
