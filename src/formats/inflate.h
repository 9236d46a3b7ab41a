// Compressed bytes in memory: gzip and zlib, as HTTP bodies have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

bool is_compressed(std::string_view bytes);  // begins as gzip or zlib does

// The decompressed bytes, cut to `most`, so that few bytes cannot fill the memory. Bytes that end early give what they
// have; nothing if they are damaged at their beginning.
std::optional<std::string> inflated(std::string_view bytes, int64_t most);

}  // namespace tokamak
