#include "data/stores/document_sink.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_writer.h"
#include "data/stores/llmc.h"

namespace tokamak {

namespace {

constexpr size_t kSinkBuffer = 1 << 20;  // bytes

std::string numbered(const char* format, int64_t number) {
  char name[64];
  std::snprintf(name, sizeof name, format, static_cast<long>(number));
  return name;
}

void check_ids(std::span<const int32_t> ids, TokenType type, const std::string& path) {
  const int32_t most = type == TokenType::kUint16 ? 65535 : std::numeric_limits<int32_t>::max();
  for (const int32_t id : ids) {
    if (id < 0 || id > most) fail(Kind::kData, str("token id ", id, " does not fit ", path, ", of ids to ", most));
  }
}

class TokamakSink final : public DocumentSink {
 public:
  explicit TokamakSink(const SinkOptions& options) : writer_(options.directory, options.head, options.shard_tokens) {}
  void add(std::span<const int32_t> ids) override { writer_.add(ids); }
  void end_document() override { writer_.end_document(); }
  void finish() override { static_cast<void>(writer_.finish()); }

 private:
  DatasetWriter writer_;
};

// A shard of ours is one of Megatron's, with a file of checksums that Megatron does not know.
class MegatronSink final : public DocumentSink {
 public:
  explicit MegatronSink(const SinkOptions& options) : options_(options) {}

  void add(std::span<const int32_t> ids) override {
    open();
    in_document_ = true;
    check_ids(ids, options_.head.token_type, options_.directory);
    shard_->add(ids);
  }
  void end_document() override {
    open();
    in_document_ = false;
    shard_->end_document();
  }
  void finish() override {
    open();
    close();
    sync_directory(options_.directory, Kind::kData);
  }

 private:
  void open() {
    if (shard_ && !in_document_ && shard_->tokens() >= options_.shard_tokens) close();
    if (!shard_) shard_.emplace(options_.directory, numbered("part-%05ld", number_), options_.head.token_type);
  }
  void close() {
    static_cast<void>(shard_->finish());
    shard_.reset();
    remove_file(options_.directory + "/" + numbered("part-%05ld", number_++) + ".sum", Kind::kData);
  }

  SinkOptions options_;
  std::optional<ShardWriter> shard_;
  int64_t number_ = 0;
  bool in_document_ = false;
};

// Values of one width, buffered on their way to a file.
class ValueFile {
 public:
  explicit ValueFile(const std::string& path) : file_(path, Kind::kData) {}

  template <class T>
  void put(T value) {
    const size_t at = buffer_.size();
    buffer_.resize(at + sizeof value);
    std::memcpy(buffer_.data() + at, &value, sizeof value);
    if (buffer_.size() >= kSinkBuffer) flush();
  }
  void put(std::span<const int32_t> ids, TokenType type) {
    for (const int32_t id : ids) {
      if (type == TokenType::kInt32) {
        put(id);
      } else {
        put(static_cast<uint16_t>(id));
      }
    }
  }
  void write(std::string_view text) {
    flush();
    file_.write(text);
  }
  void rewrite_beginning(std::string_view text) {
    flush();
    file_.rewrite(0, std::as_bytes(std::span(text.data(), text.size())));
  }
  void finish() {
    flush();
    file_.sync();
    file_.close();
  }
  const std::string& path() const { return file_.path(); }

 private:
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  OutputFile file_;
  std::vector<std::byte> buffer_;
};

class DatatroveSink final : public DocumentSink {
 public:
  explicit DatatroveSink(const SinkOptions& options) : options_(options) {}

  void add(std::span<const int32_t> ids) override {
    open();
    in_document_ = true;
    check_ids(ids, options_.head.token_type, file_->tokens.path());
    file_->tokens.put(ids, options_.head.token_type);
    count_ += std::ssize(ids);
  }
  void end_document() override {
    open();
    in_document_ = false;
    file_->ends.put(static_cast<uint64_t>(count_));
  }
  void finish() override {
    open();
    close();
    sync_directory(options_.directory, Kind::kData);
  }

 private:
  struct Files {
    explicit Files(const std::string& path) : tokens(path), ends(path + ".index") {}
    ValueFile tokens;
    ValueFile ends;
  };

  void open() {
    if (file_ && !in_document_ && count_ >= options_.shard_tokens) close();
    if (!file_) file_.emplace(options_.directory + "/" + numbered("%05ld_unshuffled.ds", number_++));
  }
  void close() {
    file_->tokens.finish();
    file_->ends.finish();
    const std::string& name = options_.head.tokenizer.name;
    write_text_atomically(file_->tokens.path() + ".metadata",
                          str(name, "|", token_bytes(options_.head.token_type), "\n", count_, "\n",
                              human_count(double(count_)), " tokens"),
                          Kind::kData);
    file_.reset();
    count_ = 0;
  }

  SinkOptions options_;
  std::optional<Files> file_;
  int64_t number_ = 0;
  int64_t count_ = 0;  // tokens of the file
  bool in_document_ = false;
};

class LlmcSink final : public DocumentSink {
 public:
  explicit LlmcSink(const SinkOptions& options) : options_(options) {
    TOKAMAK_CHECK(options_.delimiter >= 0, options_.directory);
    options_.shard_tokens = std::min<int64_t>(options_.shard_tokens, std::numeric_limits<int32_t>::max());
  }

  // The last token of a document waits in held_: it may be the delimiter.
  void add(std::span<const int32_t> ids) override {
    if (ids.empty()) return;
    check_ids(ids, options_.head.token_type, options_.directory);
    begin_document(ids[0] == options_.delimiter ? Front::kItsOwn : Front::kAdded);
    write_held();
    write(ids.first(ids.size() - 1));
    held_ = ids.back();
  }
  void end_document() override {
    begin_document(Front::kAdded);
    if (*front_ == Front::kAdded && held_ == options_.delimiter) held_.reset();  // it stands in front now
    write_held();
    front_.reset();
  }
  void finish() override {
    if (!file_) open();
    close();
    sync_directory(options_.directory, Kind::kData);
  }

 private:
  enum class Front { kItsOwn, kAdded };  // the delimiter before a document

  void begin_document(Front front) {
    if (front_) return;
    front_ = front;
    if (front == Front::kAdded) write(std::span(&options_.delimiter, 1));
  }
  void write_held() {
    if (held_) write(std::span(&*held_, 1));
    held_.reset();
  }
  void write(std::span<const int32_t> ids) {
    while (!ids.empty()) {
      if (file_ && count_ == options_.shard_tokens) close();
      if (!file_) open();
      const auto piece = ids.first(std::min<int64_t>(std::ssize(ids), options_.shard_tokens - count_));
      file_->put(piece, options_.head.token_type);
      count_ += std::ssize(piece);
      ids = ids.subspan(piece.size());
    }
  }
  std::string header() const {
    const bool wide = options_.head.token_type == TokenType::kInt32;
    return encode_llmc_header(wide ? TokenElement::kUint32 : TokenElement::kUint16, count_);
  }
  void open() {
    count_ = 0;
    file_.emplace(options_.directory + "/" + numbered("tokens_train_%06ld.bin", number_++));
    file_->write(header());
  }
  void close() {
    file_->rewrite_beginning(header());  // now that the number of tokens is known
    file_->finish();
    file_.reset();
  }

  SinkOptions options_;
  std::optional<ValueFile> file_;
  std::optional<Front> front_;  // of the current document
  std::optional<int32_t> held_;
  int64_t number_ = 1;  // llm.c takes shard 0 for validation
  int64_t count_ = 0;   // tokens of the file
};

}  // namespace

std::unique_ptr<DocumentSink> make_tokamak_sink(const SinkOptions& options) {
  return std::make_unique<TokamakSink>(options);
}
std::unique_ptr<DocumentSink> make_megatron_sink(const SinkOptions& options) {
  return std::make_unique<MegatronSink>(options);
}
std::unique_ptr<DocumentSink> make_datatrove_sink(const SinkOptions& options) {
  return std::make_unique<DatatroveSink>(options);
}
std::unique_ptr<DocumentSink> make_llmc_sink(const SinkOptions& options) { return std::make_unique<LlmcSink>(options); }

}  // namespace tokamak
