#include "data/text/text_batches.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/strings.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 10;  // they stay in a core's cache
constexpr size_t kMostDocuments = 4096;              // of a batch that is read in sequence

bool is_read_by_lines(const TextFile& file) {
  return file.format == TextFormat::kJsonLines && compression_of(file.path) == Compression::kNone;
}

int64_t lines_before(const std::string& path, int64_t offset) {
  FileStream stream(path, Kind::kData);
  std::vector<std::byte> block(kBlockBytes);
  int64_t lines = 0;
  for (int64_t rest = offset; rest > 0;) {
    const int64_t got = stream.read(std::span(block).first(static_cast<size_t>(std::min(rest, kBlockBytes))));
    if (got == 0) break;
    lines += std::count(block.begin(), block.begin() + got, std::byte{'\n'});
    rest -= got;
  }
  return lines;
}

}  // namespace

std::string place_of(const Document& document) {
  const TextFile& file = *document.file;
  if (file.format == TextFormat::kPlain) return file.path;
  return str(file.path, ":", document.line > 0 ? document.line : lines_before(file.path, document.offset) + 1);
}

Batch read_lines(const TextFile& file, int64_t begin, int64_t end) {
  FileStream stream(file.path, Kind::kData, std::max<int64_t>(begin - 1, 0));
  const auto block = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  Batch batch;
  Document document;
  document.file = &file;
  const auto finish = [&] {
    if (document.offset == 0) remove_byte_order_mark(document.text);
    if (!trim(document.text).empty()) batch.push_back(std::move(document));
    document = {};
    document.file = &file;
  };
  bool skips = begin > 0;  // the line that began before belongs to the range before; its '\n' may be at begin - 1
  for (;;) {
    const int64_t offset = stream.file_position();
    const int64_t size = stream.read(std::as_writable_bytes(std::span(block.get(), kBlockBytes)));
    if (size == 0) break;
    for (int64_t at = 0; at < size;) {
      const char* line = block.get() + at;
      const auto* feed = static_cast<const char*>(std::memchr(line, '\n', static_cast<size_t>(size - at)));
      const int64_t length = feed == nullptr ? size - at : feed - line;
      if (!skips) {
        if (document.text.empty()) document.offset = offset + at;
        if (std::ssize(document.text) + length > kLongestLine) {
          fail(Kind::kData, str(place_of(document), ": a line of more than ", human_bytes(kLongestLine)));
        }
        document.text.append(line, static_cast<size_t>(length));
      }
      at += length + 1;  // past the '\n', or past the block
      if (feed == nullptr) {
        if (skips && offset + size >= end) return batch;
        continue;
      }
      if (!skips) finish();
      skips = false;
      if (offset + at >= end) return batch;
    }
  }
  finish();  // a last line without '\n'
  return batch;
}

TextBatches::TextBatches(const std::vector<TextFile>& files, int64_t max_document_bytes, int64_t batch_bytes)
    : files_(files), max_document_bytes_(max_document_bytes), batch_bytes_(batch_bytes) {}

int64_t TextBatches::bytes_read() const { return bytes_done_ + (file_ ? file_->file_position() : offset_); }

ReadBatch TextBatches::next() {
  while (at_ < files_.size()) {
    const TextFile& file = files_[at_];
    if (is_read_by_lines(file)) return next_lines(file);
    Batch batch = next_documents(file);
    if (batch.empty()) continue;
    return [batch = std::move(batch)]() mutable { return std::move(batch); };
  }
  return {};
}

ReadBatch TextBatches::next_lines(const TextFile& file) {
  const int64_t begin = offset_;
  const int64_t end = std::min(begin + batch_bytes_, file.bytes);
  offset_ = end;
  if (end == file.bytes) finish_file();
  return [&file, begin, end] { return read_lines(file, begin, end); };
}

Batch TextBatches::next_documents(const TextFile& file) {
  if (!file_) file_ = open_text_file(file, max_document_bytes_);
  Batch batch;
  int64_t bytes = 0;
  while (bytes < batch_bytes_ && batch.size() < kMostDocuments) {
    Document document;
    document.file = &file;
    if (!file_->next(document)) {
      finish_file();
      break;
    }
    bytes += std::ssize(document.text);
    if (!trim(document.text).empty()) batch.push_back(std::move(document));
  }
  return batch;
}

void TextBatches::finish_file() {
  bytes_done_ += files_[at_++].bytes;
  file_.reset();
  offset_ = 0;
}

}  // namespace tokamak
