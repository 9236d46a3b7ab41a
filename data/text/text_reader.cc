#include "data/text/text_reader.h"

#include <algorithm>

#include "base/lines.h"
#include "base/printable.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "formats/compressed_stream.h"
#include "formats/json.h"
#include "formats/json_member.h"

namespace tokamak {

namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr int64_t kLinesAtOnce = int64_t{1} << 20;  // bytes of a .txt file in memory, for TextLines
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Length of the first document of an over-long `text`; see TextReader.
size_t cut_point(std::string_view text) {
  const size_t blank = text.rfind("\n\n");
  const size_t blank_crlf = text.rfind("\n\r\n");
  size_t cut = 0;
  if (blank != std::string_view::npos) cut = blank + 2;
  if (blank_crlf != std::string_view::npos) cut = std::max(cut, blank_crlf + 3);
  if (cut > 0) return cut;
  if (const size_t line = text.rfind('\n'); line != std::string_view::npos) return line + 1;
  cut = text.size();  // go back to the start of a character that the end would split
  for (size_t back = 0; back < 4 && back < cut; ++back) {
    const auto byte = static_cast<unsigned char>(text[cut - 1 - back]);
    if (byte < 0x80) break;  // ASCII: no character is split
    if (byte >= 0xC0) {
      const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      if (back + 1 < length) cut -= back + 1;
      break;
    }
  }
  return cut > 0 ? cut : text.size();
}

// Makes LF of each CR LF and returns their number.
int64_t remove_carriage_returns(std::string& text) {
  if (text.find("\r\n") == std::string::npos) return 0;
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[kept++] = text[i];
  }
  const auto removed = static_cast<int64_t>(text.size() - kept);
  text.resize(kept);
  return removed;
}

int64_t nul_bytes_of(std::string_view text) {
  const size_t first = text.find('\0');
  return first == std::string_view::npos ? 0
                                         : std::count(text.begin() + static_cast<ptrdiff_t>(first), text.end(), '\0');
}

int64_t invalid_bytes_of(std::string_view text) {
  if (is_valid_utf8(text)) return 0;
  int64_t invalid = 0;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    invalid += c.code == kInvalidUtf8 ? 1 : 0;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return invalid;
}

class PlainTextReader final : public FileReader {
 public:
  PlainTextReader(const std::string& path, int64_t max_bytes)
      : stream_(open_stream(path, Kind::kData)), max_bytes_(static_cast<size_t>(max_bytes)) {
    if (fill() && buffer_.starts_with(kByteOrderMark)) at_ = scanned_ = kByteOrderMark.size();
  }
  bool next(Document& document) override;
  int64_t file_position() const override { return stream_->file_position(); }

 private:
  bool fill();

  std::unique_ptr<ByteStream> stream_;
  size_t max_bytes_;
  std::string buffer_;
  size_t at_ = 0;       // start of the next document in buffer_
  size_t scanned_ = 0;  // no form feed between at_ and here
};

bool PlainTextReader::fill() {
  buffer_.erase(0, at_);
  scanned_ -= at_;
  at_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  const int64_t count = stream_->read(std::as_writable_bytes(std::span(buffer_).subspan(old)));
  buffer_.resize(old + static_cast<size_t>(count));
  return count > 0;
}

bool PlainTextReader::next(Document& document) {
  for (;;) {
    const size_t feed = buffer_.find('\f', scanned_);
    const size_t end = std::min(feed, buffer_.size());
    if (max_bytes_ > 0 && end - at_ > max_bytes_) {
      const size_t cut = cut_point(std::string_view(buffer_).substr(at_, max_bytes_));
      document.text.assign(buffer_, at_, cut);
      at_ += cut;
      scanned_ = at_;
      return true;
    }
    if (feed != std::string::npos) {
      document.text.assign(buffer_, at_, feed - at_);
      at_ = scanned_ = feed + 1;
      return true;
    }
    scanned_ = buffer_.size();
    if (max_bytes_ == 0 && std::ssize(buffer_) - static_cast<int64_t>(at_) > kLongestLine) {
      fail(Kind::kData, str(stream_->path(), ": a document of more than ", human_bytes(kLongestLine)),
           "form feeds separate the documents of a .txt file");
    }
    if (fill()) continue;
    if (buffer_.empty()) return false;
    document.text = std::move(buffer_);
    buffer_.clear();
    at_ = scanned_ = 0;
    return true;
  }
}

class JsonLinesReader final : public FileReader {
 public:
  explicit JsonLinesReader(const std::string& path) : lines_(open_stream(path, Kind::kData)) {}
  bool next(Document& document) override {
    if (!lines_.next(document.text)) return false;
    document.line = lines_.line_number();
    if (document.line == 1) remove_byte_order_mark(document.text);
    return true;
  }
  int64_t file_position() const override { return lines_.file_position(); }

 private:
  LineReader lines_;
};

// The reference for read_json_text(): slower, and with the errors.
std::string json_text(const Document& document, const std::string& key) {
  const JsonDocument json(document.text, {place_of(document)}, JsonRules::kLenient);
  const JsonValue text = json[key];
  if (text.is_missing()) {
    text.refuse(
        "the members are " + printable(join(json.root().keys(), ", ")),
        "--text-key of `data tokenize` and --json-key of `tokenizer train` name the member that holds the text");
  }
  return text.text();
}

}  // namespace

void remove_byte_order_mark(std::string& text) {
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
}

bool is_blank(const Document& document) { return trim(document.text).empty(); }

std::unique_ptr<FileReader> open_text_file(const TextFile& file, int64_t max_document_bytes) {
  switch (file.format) {
    case TextFormat::kPlain:
      return std::make_unique<PlainTextReader>(file.path, max_document_bytes);
    case TextFormat::kJsonLines:
      return std::make_unique<JsonLinesReader>(file.path);
  }
  TOKAMAK_UNREACHABLE(file.path);
}

TextReader::TextReader(const std::vector<TextFile>& files, int64_t max_document_bytes)
    : files_(files), max_document_bytes_(max_document_bytes) {}

bool TextReader::next(Document& document) {
  for (;;) {
    if (!file_) {
      if (opened_ == files_.size()) return false;
      file_ = open_text_file(files_[opened_++], max_document_bytes_);
    }
    document = {};
    document.file = &files_[opened_ - 1];
    if (!file_->next(document)) {
      file_.reset();
      bytes_done_ += files_[opened_ - 1].bytes;
      continue;
    }
    if (!is_blank(document)) return true;
  }
}

int64_t TextReader::bytes_read() const { return bytes_done_ + (file_ ? file_->file_position() : 0); }

void TextParser::parse(Document& document) {
  TextFaults& faults = document.faults;
  switch (document.file->format) {
    case TextFormat::kPlain:
      faults.crlf_line_ends = remove_carriage_returns(document.text);
      faults.invalid_bytes = invalid_bytes_of(document.text);
      break;
    case TextFormat::kJsonLines:  // valid JSON has valid UTF-8 only
      if (read_json_text(document.text, json_key_, text_)) {
        document.text.swap(text_);
      } else {
        document.text = json_text(document, json_key_);
      }
      break;
  }
  faults.nul_bytes = nul_bytes_of(document.text);
}

TextLines::TextLines(const std::vector<TextFile>& files, std::string json_key)
    : reader_(files, kLinesAtOnce), parser_(std::move(json_key)) {}

bool TextLines::next(std::string& line) {
  while (at_ >= document_.text.size()) {
    if (!reader_.next(document_)) return false;
    parser_.parse(document_);
    at_ = 0;
  }
  const size_t end = std::min(document_.text.find('\n', at_), document_.text.size());
  line.assign(document_.text, at_, end - at_);
  at_ = end + 1;
  return true;
}

}  // namespace tokamak
