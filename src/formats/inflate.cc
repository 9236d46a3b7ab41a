#include "formats/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace tokamak {

bool is_compressed(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b\x08")) return true;
  if (bytes.size() < 2) return false;
  const auto first = static_cast<unsigned char>(bytes[0]), second = static_cast<unsigned char>(bytes[1]);
  return (first & 0x0F) == 8 && first >> 4 <= 7 && (first * 256 + second) % 31 == 0;  // RFC 1950, section 2.2
}

std::optional<std::string> inflated(std::string_view bytes, int64_t most) {
  constexpr int kGzipOrZlib = 32;
  constexpr size_t kFirst = size_t{64} << 10;
  z_stream zlib{};
  TOKAMAK_CHECK(inflateInit2(&zlib, MAX_WBITS + kGzipOrZlib) == Z_OK);
  zlib.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(std::min<size_t>(bytes.size(), UINT32_MAX));
  std::string out;
  int result = Z_OK;
  while (result == Z_OK && std::ssize(out) < most) {
    const size_t begin = out.size();
    out.resize(std::min(std::max(2 * begin, kFirst), static_cast<size_t>(most)));
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
    zlib.avail_out = static_cast<uInt>(out.size() - begin);
    result = inflate(&zlib, Z_NO_FLUSH);
    out.resize(out.size() - zlib.avail_out);
  }
  inflateEnd(&zlib);
  if (out.empty() && result != Z_STREAM_END) return std::nullopt;
  return out;
}

}  // namespace tokamak
