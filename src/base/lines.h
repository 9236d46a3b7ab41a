// The lines of a text file, without '\n', read in blocks: a line may have any length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/byte_stream.h"

namespace tokamak {

// The longest line or document: a file without line breaks would fill the memory.
constexpr int64_t kLongestLine = int64_t{256} << 20;  // bytes

// A line beyond the limit is an error, or only its first bytes are kept: one more than the limit.
enum class LongLines { kFail, kCut };

class LineReader {
 public:
  explicit LineReader(std::string path) : LineReader(std::make_unique<FileStream>(std::move(path), Kind::kData)) {}
  explicit LineReader(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  // False at the end of the file. `most`: of bytes, as a sparse file of NULs is one line.
  bool next(std::string& line, int64_t most = kLongestLine, LongLines long_lines = LongLines::kFail);
  int64_t line_offset() const { return line_offset_; }  // where the line last read begins in the stream
  int64_t line_number() const { return line_number_; }  // number of the line last read, from 1
  const std::string& path() const { return stream_->path(); }
  int64_t file_position() const { return stream_->file_position(); }

 private:
  bool fill();

  std::unique_ptr<ByteStream> stream_;
  std::string block_;
  size_t at_ = 0;  // the next line begins here in block_
  int64_t line_number_ = 0;
  int64_t line_offset_ = 0, next_offset_ = 0;
};

}  // namespace tokamak
