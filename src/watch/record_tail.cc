#include "watch/record_tail.h"

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "monitor/jsonl.h"

namespace tokamak {

namespace {

constexpr size_t kMarkBytes = 256;  // records have times in milliseconds, so two files differ in them

std::string bytes_of(const InputFile& file, int64_t offset, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return bytes;
}

}  // namespace

RecordTail::RecordTail(std::string path, int64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}

bool RecordTail::is_continued(const InputFile& file) const {
  const auto length = static_cast<int64_t>(mark_.size());
  return file.size() >= offset_ && bytes_of(file, offset_ - length, length) == mark_;
}

RecordTail::News RecordTail::poll() {
  News news;
  if (!exists(path_)) {
    news.trouble = offset_ == 0 ? "no metrics.jsonl yet" : "metrics.jsonl is gone";
    return news;
  }
  try {
    const InputFile file(path_, Kind::kData);
    if (!is_continued(file)) {
      news.is_new_file = true;
      offset_ = 0;
      mark_.clear();
      skipped_ = 0;
    }
    if (skipped_ > kLongestRecord) {
      news.trouble = str("a line of more than ", human_bytes(kLongestRecord), " in metrics.jsonl");
      return news;
    }
    const int64_t length = std::min(most_bytes_, file.size() - offset_);
    take(bytes_of(file, offset_, length), news);
    news.has_more = file.size() - offset_ > 0 && length == most_bytes_;
    news.read_share = file.size() > 0 ? static_cast<double>(offset_) / static_cast<double>(file.size()) : 1;
  } catch (const Error& error) {  // the file was truncated meanwhile, or a server is away; the next call tries again
    news.trouble = error.what();
  }
  return news;
}

void RecordTail::take(std::string_view block, News& news) {
  const size_t last = block.rfind('\n');
  const bool is_full = static_cast<int64_t>(block.size()) == most_bytes_;
  const size_t taken = last != std::string_view::npos ? last + 1 : is_full ? block.size() : 0;
  for (size_t begin = 0; begin < taken;) {
    const size_t newline = block.find('\n', begin);
    const size_t end = std::min(newline, taken);
    if (newline == std::string_view::npos) {
      skipped_ += static_cast<int64_t>(end - begin);
    } else if (skipped_ == 0) {
      if (auto record = parse_record(block.substr(begin, end - begin))) news.records.push_back(std::move(*record));
    } else {
      skipped_ = 0;
    }
    begin = end + 1;
  }
  offset_ += static_cast<int64_t>(taken);
  mark_.append(block.substr(0, taken));
  if (mark_.size() > kMarkBytes) mark_.erase(0, mark_.size() - kMarkBytes);
}

}  // namespace tokamak
