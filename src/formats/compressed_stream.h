// Text files that may be compressed: gzip of several members, zstd of several frames. Memory does not depend on how far
// the bytes expand: callers limit a line or a document, and a zstd window has 2 GiB at most.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"

namespace tokamak {

enum class Compression { kNone, kGzip, kZstd };

Compression compression_of(std::string_view path);            // by its extension: .gz, .zst, or another
std::string_view without_compression(std::string_view path);  // "a.txt.gz" -> "a.txt"

// The decompressed bytes of the file. Error(kind), with the file, the offset in it and the reason, if the file is
// damaged or ends within a member or frame. The checksums in the file are verified where it has them. A range begins
// and ends between members or frames.
std::unique_ptr<ByteStream> open_stream(const std::string& path, Compression compression, Kind kind,
                                        ByteRange range = {});
std::unique_ptr<ByteStream> open_stream(const std::string& path, Kind kind);  // by its extension

}  // namespace tokamak
