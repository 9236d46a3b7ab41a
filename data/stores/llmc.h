// A shard of llm.c, or of modded-nanogpt and others that took its format.
//
//   shard  := header token[tokens]
//   header := i32 magic version tokens 0[253]      1024 bytes
//   magic  := 20240520 (version 1, tokens u16) | 20240801 (version 7, tokens u32)
//
// Each document has a delimiter before it (GPT-2: 50256, Llama 3: 128000). Shards are cut anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/stores/token_file.h"

namespace tokamak {

inline constexpr int64_t kLlmcHeaderBytes = 1024;
inline constexpr int32_t kLlmcMagicU16 = 20240520;
inline constexpr int32_t kLlmcMagicU32 = 20240801;

bool is_llmc_magic(int32_t magic);
std::string encode_llmc_header(TokenElement type, int64_t tokens);  // type kUint16 or kUint32, tokens below 2^31

// Error(kData), naming `path`, unless these are the first bytes of a shard of `file_bytes` bytes. `head` may be short.
TokenLayout parse_llmc_header(std::span<const std::byte> head, int64_t file_bytes, const std::string& path);

// `delimiter` -1: unknown.
std::unique_ptr<TokenStore> open_llmc(const std::string& path, int32_t delimiter, FilePool& pool);

}  // namespace tokamak
