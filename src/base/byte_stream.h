// Bytes that are read once, in order: a file's, or those that a reader of a compressed file makes of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"

namespace tokamak {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out`, which is not empty, from its start, and returns the number of bytes: at least 1, or 0 at the end.
  virtual int64_t read(std::span<std::byte> out) = 0;
  virtual int64_t file_position() const = 0;  // bytes of the file that were read, compressed or not
  virtual const std::string& path() const = 0;
};

// Bytes of a file. An end of INT64_MAX is the size that it has when it is opened.
struct ByteRange {
  int64_t begin = 0, end = INT64_MAX;
  int64_t size() const { return end - begin; }
};

class FileStream final : public ByteStream {
 public:
  FileStream(std::string path, Kind kind, ByteRange range = {})
      : file_(std::move(path), kind), offset_(range.begin), end_(std::min(range.end, file_.size())) {}

  int64_t read(std::span<std::byte> out) override {
    const int64_t count = std::clamp<int64_t>(end_ - offset_, 0, std::ssize(out));
    file_.read_at(offset_, out.first(static_cast<size_t>(count)));
    offset_ += count;
    return count;
  }
  int64_t file_position() const override { return offset_; }
  const std::string& path() const override { return file_.path(); }

 private:
  InputFile file_;
  int64_t offset_, end_;
};

}  // namespace tokamak
