#include "data/order/pack_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "data/order/pack_format.h"

namespace tokamak {

namespace {

constexpr int64_t kPiecesAtOnce = 256;

std::string pack_hint(const std::string& directory, int64_t length) {
  return str("make it with `tokamak data pack ", directory, " --length ", length, "`");
}

int64_t number(std::span<const std::byte> bytes, int64_t at) {
  int64_t value;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

}  // namespace

PackTable::PackTable(const Dataset& data, int64_t length, FilePool& pool) : length_(length), tokens_(data.tokens()) {
  const std::string path = pack_table_path(data.directory(), length);
  const std::string hint = pack_hint(data.directory(), length);
  if (!exists(path)) fail(Kind::kData, str("data.packing is best_fit, but there is no ", path), hint);
  const auto damaged = [&](auto... what) { fail(Kind::kData, str(path, " is damaged: ", what...), hint); };

  const FilePool::Lease lease = pool.open(path);
  const int64_t size = lease.file().size();
  std::array<std::byte, kPackFooterBytes> footer{};
  if (size < kPackFooterBytes) damaged("it has ", size, " bytes");
  lease.file().read_at(size - kPackFooterBytes, footer);
  if (std::memcmp(footer.data(), kPackMagic, 8) != 0) damaged("its end is not that of a table of rows");
  report_ = {.rows = number(footer, 16), .pieces = number(footer, 24), .positions = number(footer, 32)};
  const auto [rows, pieces, positions] = report_;
  // A row takes 8 bytes and a piece 12, so larger numbers cannot be true; the sizes below cannot overflow then.
  if (rows < 1 || pieces < rows || rows > size / 8 || pieces > size / kPieceBytes) {
    damaged("it counts ", rows, " rows of ", pieces, " pieces in ", size, " bytes");
  }
  const int64_t body = pieces * kPieceBytes + (rows + 1) * 8;
  const int64_t blocks = (body + kPackBlockBytes - 1) / kPackBlockBytes;
  if (body + blocks * 8 + kPackFooterBytes != size) {
    damaged(rows, " rows of ", pieces, " pieces make another size than ", size, " bytes");
  }
  SumTable sums{.block_bytes = kPackBlockBytes, .sums = std::vector<uint64_t>(blocks)};
  lease.file().read_at(body, std::as_writable_bytes(std::span(sums.sums)));
  const uint64_t self = hash_of_sums(sums, std::span(footer).first(kPackFooterBytes - 8));
  if (static_cast<uint64_t>(number(footer, kPackFooterBytes - 8)) != self) damaged("its checksum does not match");
  hash_ = hex64(self);

  const std::string dataset(reinterpret_cast<const char*>(footer.data()) + 40, 32);
  if (number(footer, 8) != length || dataset != data.id()) {
    fail(Kind::kData,
         str(path, " packs data set ", printable(dataset), " into rows of ", number(footer, 8), "; ", data.directory(),
             " is ", data.id(), ", data.sequence_length is ", length),
         hint);
  }
  file_ = std::make_unique<CheckedFile>(path, body, std::move(sums), pool);
}

void PackTable::row(int64_t r, std::vector<TokenRange>& out) const {
  TOKAMAK_CHECK(r >= 0 && r < rows(), "row ", r, " of ", rows());
  std::array<int64_t, 2> bounds;
  file_->read_at(report_.pieces * kPieceBytes + 8 * r, std::as_writable_bytes(std::span(bounds)));
  const auto [begin, end] = bounds;
  const auto bad = [&](auto... what) { fail(Kind::kData, str("row ", r, " of ", file_->path(), what...)); };
  if (begin < 0 || end <= begin || end > report_.pieces || end - begin > length_) {
    bad(" has pieces ", begin, " to ", end, " of ", report_.pieces);
  }
  out.clear();
  int64_t positions = 0;
  std::array<std::byte, kPiecesAtOnce * kPieceBytes> buffer;
  for (int64_t at = begin; at < end; at += kPiecesAtOnce) {
    const auto bytes = std::span(buffer).first(std::min(kPiecesAtOnce, end - at) * kPieceBytes);
    file_->read_at(at * kPieceBytes, bytes);
    for (int64_t i = 0; i < std::ssize(bytes); i += kPieceBytes) {
      const int64_t first = number(bytes, i);
      uint32_t count;
      std::memcpy(&count, bytes.data() + i + 8, 4);
      positions += count;
      if (first < 0 || count == 0 || positions > length_ || first >= tokens_ - int64_t{count}) {
        bad(" has a piece of ", count, " positions at token ", first, ", and ", positions,
            " positions; the data set has ", tokens_, " tokens");
      }
      out.push_back({first, int64_t{count} + 1});
    }
  }
}

}  // namespace tokamak
