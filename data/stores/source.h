// Opens a source of any format: files of ours or of other programs. source.cc has the one table of formats.
#pragma once

#include <string>

#include "data/file_pool.h"
#include "data/manifest.h"
#include "data/options.h"
#include "data/stores/megatron.h"
#include "data/token_store.h"

namespace tokamak {

struct OpenSource {
  SourceFormat format = SourceFormat::kTokamak;
  Manifest
      manifest;  // of another program's files: made from the tokenizer. vocab_size 0 and tokenizer.hash "": unknown
  TokenStores stores;
};

// Whether train makes a data set of it before the run (data/prepare/text_sources.h). Text is: format jsonl; a path that
// ends in .jsonl, .jsonl.gz or .jsonl.zst; a directory with such files and no tokens.
bool is_text_source(const SourceOptions& source);

// The format of the files at `source.path`: source.format, or what they are. Error(kData) if they are not of that
// format, or of none that we read.
SourceFormat detect_format(const SourceOptions& source);

// The manifest without its shards if the files are another program's. Reads no tokens. Text must have a tokenizer,
// and only that is read. Error(kData) as above.
Manifest read_source_manifest(const SourceOptions& source);

// `pool` must outlive the stores. Error(kData) for text. Takes a time that grows with the number of files, not with
// their sizes.
OpenSource open_source(const SourceOptions& source, FilePool& pool, SequenceOrder order = SequenceOrder::kContiguous);

}  // namespace tokamak
