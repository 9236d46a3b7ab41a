#include "data/pipeline/corpus_reader.h"

#include "base/lines.h"
#include "base/strings.h"
#include "data/pipeline/document_line.h"
#include "data/text/text_reader.h"
#include "data/web/charset.h"
#include "data/web/headers.h"
#include "data/web/http.h"
#include "data/web/warc.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

void refuse(Document& document, const char* reason) {
  document.dropped = true;
  document.reason = reason;
}

const char* reason_of(LineProblem::Kind kind) {
  constexpr const char* kReasons[] = {"input.no_json", "input.no_text", "input.too_deep"};
  return kReasons[static_cast<size_t>(kind)];
}

class LinesReader final : public CorpusReader {
 public:
  LinesReader(const CorpusFile& file, ByteRange bytes, const CorpusReadOptions& options)
      : lines_(open_stream(file.path, compression_of(file.path), Kind::kData, bytes)),
        begin_(bytes.begin),
        most_(options.document_bytes),
        parser_(options.text_key) {}

  bool next(Document& document) override {
    do {
      if (!lines_.next(line_, most_, LongLines::kCut)) return false;
    } while (trim(line_).empty());
    document = {};
    LineProblem problem;
    if (std::ssize(line_) > most_)
      refuse(document, "input.too_long");
    else if (parser_.read(line_, document, problem))
      document.reason.clear();  // why an earlier run dropped it
    else
      refuse(document, reason_of(problem.kind));
    if (document.id.empty()) document.id = str(lines_.path(), ":", begin_ + lines_.line_offset());
    document.text_bytes = document.dropped ? std::ssize(line_) : std::ssize(document.text);
    return true;
  }
  int64_t file_position() const override { return lines_.file_position(); }

 private:
  LineReader lines_;
  int64_t begin_;
  int64_t most_;
  DocumentLineReader parser_;
  std::string line_;
};

class PlainReader final : public CorpusReader {
 public:
  PlainReader(const CorpusFile& file, const CorpusReadOptions& options)
      : file_{file.path, TextFormat::kPlain, file.bytes},
        reader_(open_text_file(file_, options.document_bytes)),
        parser_(options.text_key) {}

  bool next(Document& document) override {
    do {
      document = {};
      if (!reader_->next(document)) return false;
      ++number_;
    } while (is_blank(document));
    document.file = &file_;
    document.text_bytes = std::ssize(document.text);
    parser_.parse(document);
    document.file = nullptr;
    if (document.faults.invalid_bytes > 0) document.text = valid_utf8(document.text);
    document.id = str(file_.path, ":", number_);
    return true;
  }
  int64_t file_position() const override { return reader_->file_position(); }

 private:
  TextFile file_;
  std::unique_ptr<FileReader> reader_;
  TextParser parser_;
  int64_t number_ = 0;
};

bool is_html(std::string_view type) { return type == "text/html" || type == "application/xhtml+xml"; }

class ArchiveReader final : public CorpusReader {
 public:
  ArchiveReader(const CorpusFile& file, ByteRange bytes, const CorpusReadOptions& options)
      : path_(file.path),
        most_(options.document_bytes),
        warc_(open_stream(file.path, compression_of(file.path), Kind::kData, bytes), most_ + 1) {}

  bool next(Document& document) override {
    do {
      if (!warc_.next(record_)) return false;
    } while (record_.type != "response" && record_.type != "conversion");
    document = {};
    document.url = valid_utf8(record_.uri);
    document.id = without_frame(record_.id);
    if (document.id.empty()) document.id = str(path_, ":", warc_.records());
    document.metadata = "{\"date\": ";
    append_json_text(valid_utf8(record_.date), document.metadata);
    document.metadata += '}';
    document.text_bytes = record_.bytes;
    if (record_.bytes > most_)
      refuse(document, "input.too_long");
    else if (record_.type == "conversion")
      document.text = valid_utf8(record_.block);
    else
      take_response(document);
    return true;
  }
  int64_t file_position() const override { return warc_.file_position(); }

 private:
  // "<urn:uuid:1234>" -> "1234"
  static std::string without_frame(std::string_view id) {
    if (id.starts_with('<') && id.ends_with('>')) id = id.substr(1, id.size() - 2);
    if (id.starts_with("urn:uuid:")) id.remove_prefix(9);
    return valid_utf8(id);
  }

  void take_response(Document& document) const {
    const std::optional<HttpResponse> response = parse_http(record_.block);
    if (!response) return refuse(document, "input.no_http");
    if (response->status != 200) return refuse(document, "input.http_status");
    // The crawler has looked into the body, so that its type counts more than the one that the server sent.
    if (!is_html(record_.payload_type.empty() ? response->content_type : record_.payload_type))
      return refuse(document, "input.no_html");
    const std::optional<std::string> body = decoded_body(*response, most_ + 1);
    if (!body) return refuse(document, "input.no_body");
    if (std::ssize(*body) > most_) return refuse(document, "input.too_long");
    document.text = page_to_utf8(*body, response->charset);
    document.is_page = true;
  }

  std::string path_;
  int64_t most_;
  WarcReader warc_;
  WarcRecord record_;
};

}  // namespace

std::unique_ptr<CorpusReader> open_corpus_part(const CorpusFile& file, ByteRange bytes,
                                               const CorpusReadOptions& options) {
  switch (file.format) {
    case CorpusFormat::kWarc:
      return std::make_unique<ArchiveReader>(file, bytes, options);
    case CorpusFormat::kLines:
      return std::make_unique<LinesReader>(file, bytes, options);
    case CorpusFormat::kText:
      return std::make_unique<PlainReader>(file, options);
  }
  TOKAMAK_UNREACHABLE(file.path);
}

}  // namespace tokamak
