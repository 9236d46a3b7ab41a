#include "data/shard_writer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "data/index_format.h"

namespace tokamak {

namespace {

constexpr size_t kBufferBytes = 1 << 20;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

// Calls visit(length) for each i32 in the temporary file of lengths.
void for_each_length(const InputFile& spool, const std::function<void(int32_t)>& visit) {
  std::vector<std::byte> buffer(kBufferBytes);
  for (int64_t at = 0; at < spool.size(); at += static_cast<int64_t>(kBufferBytes)) {
    const auto piece = std::span(buffer).first(
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kBufferBytes), spool.size() - at)));
    spool.read_at(at, piece);
    for (size_t i = 0; i < piece.size(); i += 4) {
      int32_t length;
      std::memcpy(&length, piece.data() + i, 4);
      visit(length);
    }
  }
}

}  // namespace

ShardWriter::ShardWriter(const std::string& directory, const std::string& name, TokenType type)
    : prefix_(directory + "/" + name),
      type_(type),
      bin_(prefix_ + ".bin", Kind::kData),
      lengths_(prefix_ + ".lengths", Kind::kData),
      bin_buffer_(kBufferBytes),
      bin_hasher_(kBinBlockBytes),
      idx_hasher_(kIdxBlockBytes) {
  info_.name = name;
}

void ShardWriter::append(std::span<const int32_t> document) {
  add(document);
  end_document();
}

void ShardWriter::add(std::span<const int32_t> ids) {
  const int32_t limit = type_ == TokenType::kUint16 ? 65535 : std::numeric_limits<int32_t>::max();
  document_tokens_ += std::ssize(ids);
  if (document_tokens_ > std::numeric_limits<int32_t>::max()) {
    fail(Kind::kData, str("document ", info_.documents, " of ", prefix_, " has ", document_tokens_,
                          " tokens or more; an index can hold 2^31 - 1"));
  }
  uint32_t largest = 0;
  for (const int32_t id : ids) largest = std::max(largest, static_cast<uint32_t>(id));  // negative ids wrap
  TOKAMAK_CHECK(largest <= static_cast<uint32_t>(limit), "token id ", largest, " in a shard of ",
                token_type_name(type_));
  if (!ids.empty()) info_.max_token_id = std::max(info_.max_token_id, static_cast<int32_t>(largest));
  put_ids(ids);
  info_.tokens += std::ssize(ids);
}

void ShardWriter::end_document() {
  put(length_buffer_, static_cast<int32_t>(document_tokens_));
  if (length_buffer_.size() >= kBufferBytes) flush();
  document_tokens_ = 0;
  ++info_.documents;
}

void ShardWriter::put_ids(std::span<const int32_t> ids) {
  const auto width = static_cast<size_t>(token_bytes(type_));
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), (kBufferBytes - bin_filled_) / width);
    std::byte* out = bin_buffer_.data() + bin_filled_;
    if (type_ == TokenType::kUint16) {
      for (size_t i = 0; i < count; ++i) {
        const auto narrow = static_cast<uint16_t>(ids[i]);
        std::memcpy(out + 2 * i, &narrow, sizeof narrow);
      }
    } else {
      std::memcpy(out, ids.data(), 4 * count);
    }
    bin_filled_ += width * count;
    ids = ids.subspan(count);
    if (bin_filled_ == kBufferBytes) flush();
  }
}

void ShardWriter::flush() {
  const auto bin = std::span(bin_buffer_).first(bin_filled_);
  bin_hasher_.update(bin);
  bin_.write(bin);
  bin_filled_ = 0;
  lengths_.write(length_buffer_);
  length_buffer_.clear();
}

ShardInfo ShardWriter::finish() {
  flush();
  bin_.sync();
  bin_.close();
  lengths_.close();
  info_.bytes = bin_.size();
  info_.hash = bin_hasher_.hex128();
  write_index();
  remove_file(lengths_.path(), Kind::kData);
  write_sums(prefix_ + ".sum", {bin_hasher_.finish(), idx_hasher_.finish()});
  return info_;
}

// Three passes over the temporary file of lengths, one for each array of the index.
void ShardWriter::write_index() {
  OutputFile idx(prefix_ + ".idx", Kind::kData);
  std::vector<std::byte> buffer;
  const auto drain = [&](size_t above) {
    if (buffer.size() <= above) return;
    idx_hasher_.update(buffer);
    idx.write(buffer);
    buffer.clear();
  };
  const auto emit = [&](auto value) {
    put(buffer, value);
    drain(kBufferBytes);
  };

  const IndexHeader header{element_of(type_), info_.documents, info_.documents + 1};
  const auto head = encode_index_header(header);
  buffer.assign(head.begin(), head.end());
  const InputFile spool(lengths_.path(), Kind::kData);
  for_each_length(spool, [&](int32_t length) { emit(length); });
  int64_t pointer = 0;
  for_each_length(spool, [&](int32_t length) {
    emit(pointer);
    pointer += length * token_bytes(type_);
  });
  for (int64_t document = 0; document <= info_.documents; ++document) emit(document);
  drain(0);
  idx.sync();
  idx.close();
  TOKAMAK_CHECK(pointer == info_.bytes && idx.size() == header.file_bytes(), idx.path());
  info_.index_bytes = idx.size();
  info_.index_hash = idx_hasher_.hex128();
}

}  // namespace tokamak
