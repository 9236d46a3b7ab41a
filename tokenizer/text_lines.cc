#include "tokenizer/text_lines.h"

#include <algorithm>

#include "formats/json.h"

namespace tokamak {

namespace {

bool is_json_lines(const std::string& path) { return path.ends_with(".jsonl"); }

std::string text_of(const std::string& line, const std::string& key, const LineReader& reader) {
  const std::string where = str(reader.path(), ":", reader.line_number());
  const std::string hint = str("each line must be a JSON object whose text is in \"", key, "\"");
  return JsonDocument(line, {where, Kind::kData, hint}, JsonRules::kLenient)[key].text();
}

}  // namespace

TextLines::TextLines(std::vector<std::string> paths, std::string json_key)
    : paths_(std::move(paths)), json_key_(std::move(json_key)), at_(1) {
  for (const std::string& path : paths_) {
    if (is_json_lines(path) || path.ends_with(".txt")) continue;
    fail(Kind::kData, str("cannot tell what kind of text ", path, " is"),
         "name plain text .txt and JSON lines .jsonl; unpack compressed files first");
  }
}

bool TextLines::next_document(std::string& text) {
  for (;;) {
    if (!reader_) {
      if (opened_ == paths_.size()) return false;
      reader_.emplace(paths_[opened_++]);
    }
    if (!reader_->next(text)) {
      reader_.reset();
      continue;
    }
    if (!is_json_lines(reader_->path())) {
      if (text.ends_with('\r')) text.pop_back();  // as `data tokenize` reads text
      return true;
    }
    if (trim(text).empty()) continue;
    text = text_of(text, json_key_, *reader_);
    return true;
  }
}

bool TextLines::next(std::string& line) {
  if (at_ > document_.size()) {
    if (!next_document(document_)) return false;
    at_ = 0;
  }
  const size_t end = std::min(document_.find('\n', at_), document_.size());
  line.assign(document_, at_, end - at_);
  at_ = end + 1;
  return true;
}

}  // namespace tokamak
