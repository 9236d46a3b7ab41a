// pack_dataset: finds documents, packs blocks of them, and streams the table to its file.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "data/order/best_fit.h"
#include "data/order/pack_format.h"
#include "data/order/pack_table.h"

namespace tokamak {

namespace {

constexpr int64_t kDocumentsPerBlock = int64_t{1} << 20;
constexpr int64_t kTokensAtOnce = int64_t{1} << 20;  // of the search for documents
constexpr size_t kPackBufferBytes = 1 << 20;

template <class T>
void append(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

// Bytes on their way to a file, which has `path` and then a suffix while it is written.
class BufferedFile {
 public:
  explicit BufferedFile(const std::string& path) : file_(path, Kind::kData), hasher_(kPackBlockBytes) {}
  template <class T>
  void put(T value) {
    append(buffer_, value);
    if (buffer_.size() >= kPackBufferBytes) flush();
  }
  void flush() {
    hasher_.update(buffer_);
    file_.write(buffer_);
    file_.write_behind();
    buffer_.clear();
  }
  OutputFile& file() { return file_; }
  SumTable sums() { return hasher_.finish(); }

 private:
  OutputFile file_;
  BlockHasher hasher_;
  std::vector<std::byte> buffer_;
};

class TableWriter {
 public:
  explicit TableWriter(const std::string& path)
      : path_(path), temporary_(str(path, ".tmp-", process_name())), table_(temporary_), rows_(temporary_ + "-rows") {}
  ~TableWriter() {
    for (const std::string& path : {temporary_, temporary_ + "-rows"}) {
      if (exists(path)) std::remove(path.c_str());
    }
  }
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  void row(std::span<const TokenRange> pieces) {
    rows_.put(report_.pieces);
    for (const TokenRange& piece : pieces) {
      table_.put(piece.first);
      table_.put(static_cast<uint32_t>(piece.count));
      report_.positions += piece.count;
    }
    report_.pieces += std::ssize(pieces);
    ++report_.rows;
  }

  int64_t rows() const { return report_.rows; }

  PackReport finish(int64_t length, const std::string& dataset) {
    rows_.put(report_.pieces);
    rows_.flush();
    rows_.file().close();
    const InputFile spool(temporary_ + "-rows", Kind::kData);
    std::vector<int64_t> firsts(kPackBufferBytes / 8);
    for (int64_t at = 0; at < spool.size();) {
      const auto piece = std::span(firsts).first(std::min<int64_t>(std::ssize(firsts), (spool.size() - at) / 8));
      spool.read_at(at, std::as_writable_bytes(piece));
      for (const int64_t first : piece) table_.put(first);
      at += std::ssize(piece) * 8;
    }
    table_.flush();
    const SumTable sums = table_.sums();
    std::vector<std::byte> footer(8);
    std::memcpy(footer.data(), kPackMagic, 8);
    for (const int64_t value : {length, report_.rows, report_.pieces, report_.positions}) append(footer, value);
    TOKAMAK_CHECK(dataset.size() == 32, dataset);
    for (const char c : dataset) append(footer, c);
    append(footer, hash_of_sums(sums, footer));
    OutputFile& file = table_.file();
    file.write(std::as_bytes(std::span(sums.sums)));
    file.write(footer);
    file.sync();
    file.close();
    rename_path(temporary_, path_, Kind::kData);
    sync_directory(parent_directory(path_), Kind::kData);
    return report_;
  }

 private:
  std::string path_;
  std::string temporary_;
  BufferedFile table_;
  BufferedFile rows_;  // a temporary file: their number is known at the end
  PackReport report_;
};

}  // namespace

std::string pack_table_path(const std::string& directory, int64_t length) {
  return str(directory, is_directory(directory) ? "/" : ".", "pack-", length, ".tbl");
}

PackReport pack_dataset(const Dataset& data, int64_t length, const std::function<void(int64_t)>& progress) {
  if (length < 1 || length > std::numeric_limits<int32_t>::max()) {
    fail(Kind::kConfig, str("rows of ", length, " positions; they can have 1 to 2^31 - 1"));
  }
  TableWriter table(pack_table_path(data.directory(), length));
  BestFit best_fit(length);
  std::vector<TokenRange> rests;
  int64_t begin = 0;
  const auto end_document = [&](int64_t end) {
    int64_t positions = end - begin - 1;
    for (; positions >= length; positions -= length, begin += length) {
      table.row(std::vector<TokenRange>{{begin, length}});
    }
    if (positions > 0) rests.push_back({begin, positions});
    begin = end;
    if (std::ssize(rests) < kDocumentsPerBlock) return;
    best_fit.pack(rests, [&](std::span<const TokenRange> row) { table.row(row); });
    rests.clear();
  };
  std::vector<int32_t> starts;
  for (int64_t at = 0; at < data.tokens(); at += kTokensAtOnce) {
    starts.clear();
    const int64_t count = std::min(kTokensAtOnce, data.tokens() - at);
    data.document_starts(at, count, starts);
    for (const int32_t start : starts) {
      if (at + start > begin) end_document(at + start);
    }
    if (progress) progress(at + count);
  }
  end_document(data.tokens());
  best_fit.pack(rests, [&](std::span<const TokenRange> row) { table.row(row); });
  if (table.rows() == 0) fail(Kind::kData, str("data set ", data.directory(), " has no document of two tokens"));
  return table.finish(length, data.id());
}

}  // namespace tokamak
