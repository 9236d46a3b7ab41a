#include "data/stores/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kConvertedAtOnce = 4096;  // tokens

// An id that does not fit our int32_t becomes an error here; TokenStore::read checks the rest.
template <class T>
void convert(const std::byte* bytes, std::span<int32_t> out, int64_t first, const std::string& path) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(value);  // NOLINT(bugprone-signed-char-misuse): ids of 8 bits are numbers
    if (std::in_range<int32_t>(value)) continue;
    fail(Kind::kData,
         str("token ", first + static_cast<int64_t>(i), " of ", path, " has id ", value, "; ids lie in [0, 2^31)"));
  }
}

}  // namespace

void convert_ids(TokenElement type, const std::byte* bytes, std::span<int32_t> out, int64_t first,
                 const std::string& path) {
  switch (type) {
    case TokenElement::kUint8:
      return convert<uint8_t>(bytes, out, first, path);
    case TokenElement::kInt8:
      return convert<int8_t>(bytes, out, first, path);
    case TokenElement::kUint16:
      return convert<uint16_t>(bytes, out, first, path);
    case TokenElement::kInt16:
      return convert<int16_t>(bytes, out, first, path);
    case TokenElement::kUint32:
      return convert<uint32_t>(bytes, out, first, path);
    case TokenElement::kInt32:
      return convert<int32_t>(bytes, out, first, path);
    case TokenElement::kUint64:
      return convert<uint64_t>(bytes, out, first, path);
    case TokenElement::kInt64:
      return convert<int64_t>(bytes, out, first, path);
    case TokenElement::kAuto:
      break;
  }
  TOKAMAK_UNREACHABLE("token element ", static_cast<int>(type));
}

TokenFile::TokenFile(const std::string& path, ShardInfo info, TokenLayout layout, FilePool& pool)
    : TokenStore(path, std::move(info)), layout_(layout), pool_(pool) {
  const int64_t size = pool_.open(path).file().size();
  const int64_t width = element_bytes(layout_.type);
  if (layout_.tokens <= (size - layout_.begin) / width) return;
  fail(Kind::kData, str(path, " is ", size, " bytes long; ", layout_.tokens, " tokens of ", width, " bytes from byte ",
                        layout_.begin, " on take more"));
}

void TokenFile::read_ids(int64_t first, std::span<int32_t> out) const {
  const int64_t width = element_bytes(layout_.type);
  std::array<std::byte, static_cast<size_t>(kConvertedAtOnce * 8)> bytes;
  const FilePool::Lease lease = pool_.open(path());
  for (int64_t done = 0; done < std::ssize(out);) {
    const auto piece = out.subspan(done, std::min(kConvertedAtOnce, std::ssize(out) - done));
    const auto raw = std::span(bytes).first(piece.size() * width);
    lease.file().read_at(layout_.begin + (first + done) * width, raw);
    convert_ids(layout_.type, raw.data(), piece, first + done, path());
    done += std::ssize(piece);
  }
}

void hash_sampled(const InputFile& file, Hasher& hasher) {
  const int64_t size = file.size();
  hasher.update(std::as_bytes(std::span(&size, 1)));
  std::vector<std::byte> block;
  const int64_t length = std::min(size, kIdentityBlockBytes);
  for (int64_t i = 0; i < kIdentityBlocks; ++i) {
    block.resize(length);
    // From the first byte to the last; a small file is read several times, which costs nothing.
    const int64_t room = size - length;
    file.read_at(room / (kIdentityBlocks - 1) * i + room % (kIdentityBlocks - 1) * i / (kIdentityBlocks - 1), block);
    hasher.update(block);
  }
}

std::string sampled_identity(const std::string& description, const InputFile& file) {
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(description.data(), description.size())));
  hash_sampled(file, hasher);
  return hasher.hex128();
}

}  // namespace tokamak
