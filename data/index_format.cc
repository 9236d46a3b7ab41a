// Trap: the arrays start at byte 34, so nothing in an index is aligned and every load is a memcpy.
#include "data/index_format.h"

#include <cstring>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr char kIndexMagic[] = "MMIDIDX\0";        // with the terminating zero, 9 bytes
constexpr char kOldMagic[] = "TNTIDX\0";           // with the terminating zero, 8 bytes: fairseq's two older formats
constexpr int64_t kMaxEntries = int64_t{1} << 48;  // far above any real shard; keeps size arithmetic from overflowing

template <class T>
T load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TokenElement element_of_code(int code, const std::string& path) {
  switch (code) {
    case 1:
      return TokenElement::kUint8;
    case 2:
      return TokenElement::kInt8;
    case 3:
      return TokenElement::kInt16;
    case 4:
      return TokenElement::kInt32;
    case 5:
      return TokenElement::kInt64;
    case 8:
      return TokenElement::kUint16;
  }
  fail(Kind::kData, str(path, " has token type code ", code, code == 6 || code == 7 ? " (floating-point numbers)" : "",
                        "; only 1 to 5 and 8 hold token ids"));
}

}  // namespace

std::array<std::byte, kIndexHeaderBytes> encode_index_header(const IndexHeader& header) {
  std::array<std::byte, kIndexHeaderBytes> out;
  const uint64_t version = 1;
  const auto sequences = static_cast<uint64_t>(header.sequences);
  const auto entries = static_cast<uint64_t>(header.document_entries);
  std::memcpy(out.data(), kIndexMagic, 9);
  std::memcpy(out.data() + 9, &version, 8);
  TOKAMAK_CHECK(header.type == TokenElement::kUint16 || header.type == TokenElement::kInt32, element_name(header.type));
  out[17] = std::byte{header.type == TokenElement::kUint16 ? uint8_t{8} : uint8_t{4}};
  std::memcpy(out.data() + 18, &sequences, 8);
  std::memcpy(out.data() + 26, &entries, 8);
  return out;
}

IndexHeader parse_index_header(std::span<const std::byte> head, int64_t file_bytes, const std::string& path) {
  if (head.size() >= 8 && std::memcmp(head.data(), kOldMagic, 8) == 0) {
    fail(Kind::kData, str(path, " is an index of the old fairseq format (magic TNTIDX), which is not supported"),
         "tokenize the text again with `tokamak data tokenize`, or with a current Megatron-LM");
  }
  if (head.size() < 9 || std::memcmp(head.data(), kIndexMagic, 9) != 0) {
    fail(Kind::kData, str(path, " is not an index of a data set: it does not begin with MMIDIDX"));
  }
  if (std::ssize(head) < kIndexHeaderBytes) {
    fail(Kind::kData, str(path, " ends inside its header: ", head.size(), " of ", kIndexHeaderBytes, " bytes"));
  }
  if (const auto version = load<uint64_t>(head, 9); version != 1) {
    fail(Kind::kData, str(path, " has version ", version, "; only version 1 is known"));
  }
  const TokenElement type = element_of_code(static_cast<int>(head[17]), path);
  const auto sequences = load<uint64_t>(head, 18);
  const auto entries = load<uint64_t>(head, 26);
  if (sequences > kMaxEntries || entries > kMaxEntries) {
    fail(Kind::kData, str(path, " claims ", sequences, " sequences and ", entries, " document entries"));
  }
  IndexHeader header{type, static_cast<int64_t>(sequences), static_cast<int64_t>(entries)};
  const int64_t plain = header.file_bytes();
  if (file_bytes != plain && file_bytes != plain + header.sequences) {
    fail(Kind::kData, str(path, " is ", file_bytes, " bytes long; ", sequences, " sequences and ", entries,
                          " document entries take ", plain));
  }
  return header;
}

}  // namespace tokamak
