// CRC-32C (Castagnoli's polynomial; RFC 3720, B.4), for foreign formats. Our own files use XXH3 (hash.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

uint32_t crc32c(std::string_view bytes);

}  // namespace tokamak
