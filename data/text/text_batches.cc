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
constexpr size_t kBatchDocuments = 4096;             // of a batch that is read in sequence

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

// The lines of a plain .jsonl file that begin in [begin, end), bytes of the file. Opens it at the first call.
class LineRange final : public DocumentReader {
 public:
  LineRange(const TextFile& file, int64_t begin, int64_t end) : file_(file), begin_(begin), end_(end) {}
  bool next(Document& document) override {
    if (!stream_) open();
    while (next_line(document)) {
      if (document.offset == 0) remove_byte_order_mark(document.text);
      if (!is_blank(document)) return true;
    }
    return false;
  }

 private:
  void open();
  bool next_line(Document& document);
  bool fill();
  int64_t offset() const { return stream_->file_position() - filled_ + at_; }

  const TextFile& file_;
  int64_t begin_;
  int64_t end_;
  std::unique_ptr<FileStream> stream_;
  std::unique_ptr<char[]> block_;
  int64_t at_ = 0;      // the next line begins here in block_
  int64_t filled_ = 0;  // bytes of block_
};

// The line that began before `begin_` belongs to the range before. Its '\n' may be the byte before `begin_`.
void LineRange::open() {
  stream_ = std::make_unique<FileStream>(file_.path, Kind::kData, ByteRange{.begin = std::max<int64_t>(begin_ - 1, 0)});
  block_ = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  while (begin_ > 0 && offset() < end_ && fill()) {
    const auto* feed = static_cast<const char*>(std::memchr(block_.get(), '\n', static_cast<size_t>(filled_)));
    at_ = feed == nullptr ? filled_ : feed - block_.get() + 1;
    if (feed != nullptr) break;
  }
}

bool LineRange::fill() {
  at_ = 0;
  filled_ = stream_->read(std::as_writable_bytes(std::span(block_.get(), kBlockBytes)));
  return filled_ > 0;
}

bool LineRange::next_line(Document& document) {
  if (offset() >= end_) return false;
  document = {};
  document.file = &file_;
  document.offset = offset();
  while (at_ < filled_ || fill()) {
    const char* line = block_.get() + at_;
    const auto* feed = static_cast<const char*>(std::memchr(line, '\n', static_cast<size_t>(filled_ - at_)));
    const int64_t length = feed == nullptr ? filled_ - at_ : feed - line;
    if (std::ssize(document.text) + length > kLongestLine) {
      fail(Kind::kData, str(place_of(document), ": a line of more than ", human_bytes(kLongestLine)));
    }
    document.text.append(line, static_cast<size_t>(length));
    at_ += length + (feed == nullptr ? 0 : 1);
    if (feed != nullptr) break;
  }
  return true;
}

// Documents that were read before.
class ReadDocuments final : public DocumentReader {
 public:
  explicit ReadDocuments(std::vector<Document> documents) : documents_(std::move(documents)) {}
  bool next(Document& document) override {
    if (at_ == documents_.size()) return false;
    document = std::move(documents_[at_++]);
    return true;
  }

 private:
  std::vector<Document> documents_;
  size_t at_ = 0;
};

}  // namespace

std::string place_of(const Document& document) {
  const TextFile& file = *document.file;
  if (file.format == TextFormat::kPlain) return file.path;
  return str(file.path, ":", document.line > 0 ? document.line : lines_before(file.path, document.offset) + 1);
}

TextBatches::TextBatches(const std::vector<TextFile>& files, int64_t max_document_bytes, int64_t batch_bytes)
    : files_(files), max_document_bytes_(max_document_bytes), batch_bytes_(batch_bytes) {}

int64_t TextBatches::bytes_read() const { return bytes_done_ + (file_ ? file_->file_position() : offset_); }

std::unique_ptr<DocumentReader> TextBatches::next() {
  while (at_ < files_.size()) {
    const TextFile& file = files_[at_];
    if (is_read_by_lines(file)) return next_lines(file);
    std::vector<Document> documents = next_documents(file);
    if (!documents.empty()) return std::make_unique<ReadDocuments>(std::move(documents));
  }
  return nullptr;
}

std::unique_ptr<DocumentReader> TextBatches::next_lines(const TextFile& file) {
  const int64_t begin = offset_;
  const int64_t end = std::min(begin + batch_bytes_, file.bytes);
  offset_ = end;
  if (end == file.bytes) finish_file();
  return std::make_unique<LineRange>(file, begin, end);
}

std::vector<Document> TextBatches::next_documents(const TextFile& file) {
  if (!file_) file_ = open_text_file(file, max_document_bytes_);
  std::vector<Document> batch;
  int64_t bytes = 0;
  while (bytes < batch_bytes_ && batch.size() < kBatchDocuments) {
    Document document;
    document.file = &file;
    if (!file_->next(document)) {
      finish_file();
      break;
    }
    bytes += std::ssize(document.text);
    if (!is_blank(document)) batch.push_back(std::move(document));
  }
  return batch;
}

void TextBatches::finish_file() {
  bytes_done_ += files_[at_++].bytes;
  file_.reset();
  offset_ = 0;
}

}  // namespace tokamak
