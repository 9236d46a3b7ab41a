#include "data/shard_writer.h"

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
  for (const int32_t id : ids) {
    TOKAMAK_CHECK(id >= 0 && id <= limit, "token id ", id, " in a shard of ", token_type_name(type_));
    info_.max_token_id = std::max(info_.max_token_id, id);
    if (type_ == TokenType::kUint16) {
      put(bin_buffer_, static_cast<uint16_t>(id));
    } else {
      put(bin_buffer_, id);
    }
    if (bin_buffer_.size() >= kBufferBytes) flush();
  }
  info_.tokens += std::ssize(ids);
}

void ShardWriter::end_document() {
  put(length_buffer_, static_cast<int32_t>(document_tokens_));
  if (length_buffer_.size() >= kBufferBytes) flush();
  document_tokens_ = 0;
  ++info_.documents;
}

void ShardWriter::flush() {
  bin_hasher_.update(bin_buffer_);
  bin_.write(bin_buffer_);
  bin_buffer_.clear();
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
