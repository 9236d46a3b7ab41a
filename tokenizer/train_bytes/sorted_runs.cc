#include "tokenizer/train_bytes/sorted_runs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <queue>

#include "base/error.h"
#include "base/file.h"

namespace tokamak {

namespace {

constexpr size_t kMostRuns = 128;  // merged in one pass: their files are open and their buffers not tiny
constexpr int64_t kHeadBytes = 12;
constexpr size_t kWriteBytes = size_t{1} << 20;

class RunWriter {
 public:
  explicit RunWriter(const std::string& path) : file_(path, Kind::kData) {}

  void add(CountedText word) {
    const auto length = static_cast<uint32_t>(word.text.size());
    buffer_.append(reinterpret_cast<const char*>(&length), sizeof length);
    buffer_.append(reinterpret_cast<const char*>(&word.count), sizeof word.count);
    buffer_.append(word.text);
    if (buffer_.size() >= kWriteBytes) flush();
  }

  void close() {
    flush();
    file_.close();
  }

 private:
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  OutputFile file_;
  std::string buffer_;
};

class RunReader {
 public:
  RunReader(const std::string& path, int64_t buffer) : file_(path, Kind::kData), buffer_bytes_(buffer) { next(); }

  bool done() const { return done_; }
  CountedText word() const { return {std::string_view(buffer_).substr(at_ + kHeadBytes, length_), count_}; }

  void next() {
    at_ += size_;
    if (!fill(kHeadBytes)) {
      if (at_ != buffer_.size()) damaged();
      done_ = true;
      return;
    }
    std::memcpy(&length_, buffer_.data() + at_, sizeof length_);
    std::memcpy(&count_, buffer_.data() + at_ + sizeof length_, sizeof count_);
    size_ = static_cast<size_t>(kHeadBytes) + length_;
    if (!fill(static_cast<int64_t>(size_))) damaged();
  }

 private:
  // Whether `count` bytes follow at_; reads them.
  bool fill(int64_t count) {
    if (static_cast<int64_t>(buffer_.size() - at_) >= count) return true;
    buffer_.erase(0, at_);
    at_ = 0;
    const auto have = std::ssize(buffer_);
    const int64_t more = std::min(std::max(buffer_bytes_, count - have), file_.size() - offset_);
    buffer_.resize(static_cast<size_t>(have + more));
    file_.read_at(offset_, std::as_writable_bytes(std::span(buffer_).subspan(static_cast<size_t>(have))));
    offset_ += more;
    return have + more >= count;
  }

  [[noreturn]] void damaged() const {
    fail(Kind::kData, str(file_.path(), ": this temporary file is damaged, before byte ", offset_));
  }

  InputFile file_;
  int64_t buffer_bytes_;
  int64_t offset_ = 0;  // in the file, after the buffer
  std::string buffer_;
  size_t at_ = 0, size_ = 0;  // the record, in the buffer
  uint32_t length_ = 0;
  int64_t count_ = 0;
  bool done_ = false;
};

void merge_some(std::span<const std::string> paths, int64_t memory, const std::function<void(CountedText)>& take) {
  std::vector<std::unique_ptr<RunReader>> runs;
  const int64_t buffer = std::clamp<int64_t>(memory / std::max<int64_t>(1, std::ssize(paths)), 4096, 4 << 20);
  for (const std::string& path : paths) runs.push_back(std::make_unique<RunReader>(path, buffer));
  const auto later = [&](size_t a, size_t b) { return runs[a]->word().text > runs[b]->word().text; };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> first(later);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]->done()) first.push(i);
  }
  std::string word;
  while (!first.empty()) {
    word = runs[first.top()]->word().text;
    int64_t count = 0;
    while (!first.empty() && runs[first.top()]->word().text == word) {
      const size_t run = first.top();
      first.pop();
      count += runs[run]->word().count;
      runs[run]->next();
      if (!runs[run]->done()) first.push(run);
    }
    take({word, count});
  }
  runs.clear();
  for (const std::string& path : paths) remove_file(path, Kind::kData);
}

}  // namespace

void write_sorted_run(const std::string& path, std::vector<CountedText> words) {
  std::sort(words.begin(), words.end(), [](const CountedText& a, const CountedText& b) { return a.text < b.text; });
  RunWriter writer(path);
  for (const CountedText& word : words) writer.add(word);
  writer.close();
}

void merge_sorted_runs(std::vector<std::string> paths, int64_t memory, const std::function<void(CountedText)>& take) {
  for (int64_t pass = 0; paths.size() > kMostRuns; ++pass) {
    const std::string merged = str(paths[0], ".merged-", pass);
    RunWriter writer(merged);
    merge_some(std::span(paths).first(kMostRuns), memory, [&](CountedText word) { writer.add(word); });
    writer.close();
    paths.erase(paths.begin(), paths.begin() + kMostRuns);
    paths.push_back(merged);
  }
  merge_some(paths, memory, take);
}

}  // namespace tokamak
