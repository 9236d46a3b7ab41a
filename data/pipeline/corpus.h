// The files that a corpus is read from, and the parts of them that are tasks of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_stream.h"

namespace tokamak {

enum class CorpusFormat { kWarc, kLines, kText };

struct CorpusFile {
  std::string path;
  CorpusFormat format = CorpusFormat::kLines;
  int64_t bytes = 0;  // of the file, compressed or not
  size_t source = 0;  // index of the input that named it
};

// Each input is a file, a pattern with * ? [], or a directory, whose files are taken recursively; its files of other
// kinds are skipped, and counted in a warning. Error(kData) for an input without files, and for a file given twice.
std::vector<CorpusFile> find_corpus(const std::vector<std::string>& inputs);

struct CorpusPart {
  size_t file = 0;  // index
  ByteRange bytes;
};

// Parts of about `part_bytes` in the order of the files: of .jsonl at line ends, of .warc.gz between the gzip members
// of records. Other files are one part each. No part is empty.
std::vector<CorpusPart> parts_of(const std::vector<CorpusFile>& files, int64_t part_bytes);

}  // namespace tokamak
