// Tokens of any integer type in a file, from a byte offset on, and a file's identity. Reads by pread: damage and
// failing disks are errors with file, offset and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "data/element_type.h"
#include "data/file_pool.h"
#include "data/token_store.h"

namespace tokamak {

struct TokenLayout {
  TokenElement type = TokenElement::kUint16;
  int64_t begin = 0;   // bytes before the first token
  int64_t tokens = 0;  // begin + tokens * element_bytes(type) is at most the file's size
};

// A store whose tokens lie in one file. Formats add how they find documents.
class TokenFile : public TokenStore {
 public:
  // Error(kData) if the file is smaller than `layout` says. `pool` must outlive the store.
  TokenFile(const std::string& path, ShardInfo info, TokenLayout layout, FilePool& pool);

  const TokenLayout& layout() const { return layout_; }

 protected:
  FilePool& pool() const { return pool_; }

 private:
  void read_ids(int64_t first, std::span<int32_t> out) const override;

  TokenLayout layout_;
  FilePool& pool_;
};

// Tokens `first`, first + 1, ... of `path` from their bytes. Error(kData) for an id that int32_t cannot hold.
void convert_ids(TokenElement type, const std::byte* bytes, std::span<int32_t> out, int64_t first,
                 const std::string& path);

// Identity of a file whose bytes nothing has summed: its size and kIdentityBlocks blocks at fixed places. It detects
// another or a truncated file. It cannot detect a change between the blocks.
inline constexpr int64_t kIdentityBlocks = 8;
inline constexpr int64_t kIdentityBlockBytes = 4096;
void hash_sampled(const InputFile& file, Hasher& hasher);

// The hash of `description` (format, token type, counts) and of a file.
std::string sampled_identity(const std::string& description, const InputFile& file);

// Little-endian values at any offset of a file, which need not be aligned. Error(kData) if the file ends before.
template <class T>
void read_values(const InputFile& file, int64_t offset, std::span<T> out) {
  file.read_at(offset, std::as_writable_bytes(out));
}

}  // namespace tokamak
