#include "data/stores/llmc.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "data/stores/delimited.h"

namespace tokamak {

namespace {

// Other files of llm.c, which begin alike.
const char* what_llmc_file(int32_t magic) {
  switch (magic) {
    case 20240522:
      return "; it is llm.c's evaluation file";
    case 20240326:
      return "; it is llm.c's checkpoint of GPT-2";
    case 20240328:
      return "; it is llm.c's tokenizer";
    case 20240527:
      return "; it is llm.c's state of a run";
  }
  return "";
}

}  // namespace

bool is_llmc_magic(int32_t magic) {
  return magic == kLlmcMagicU16 || magic == kLlmcMagicU32 || *what_llmc_file(magic) != '\0';
}

std::string encode_llmc_header(TokenElement type, int64_t tokens) {
  TOKAMAK_CHECK(tokens >= 0 && tokens <= std::numeric_limits<int32_t>::max(), tokens);
  const bool wide = type == TokenElement::kUint32;
  const int32_t words[3] = {wide ? kLlmcMagicU32 : kLlmcMagicU16, wide ? 7 : 1, static_cast<int32_t>(tokens)};
  std::string head(kLlmcHeaderBytes, '\0');
  std::memcpy(head.data(), words, sizeof words);
  return head;
}

TokenLayout parse_llmc_header(std::span<const std::byte> head, int64_t file_bytes, const std::string& path) {
  if (std::ssize(head) < kLlmcHeaderBytes) {
    fail(Kind::kData, str(path, " ends inside its header: ", head.size(), " of ", kLlmcHeaderBytes, " bytes"));
  }
  int32_t words[3];
  std::memcpy(words, head.data(), sizeof words);
  const auto [magic, version, tokens] = words;
  if (magic != kLlmcMagicU16 && magic != kLlmcMagicU32) {
    fail(Kind::kData, str(path, " begins with ", magic, ", not with ", kLlmcMagicU16, " or ", kLlmcMagicU32,
                          ", the magic numbers of llm.c's shards", what_llmc_file(magic)));
  }
  const bool wide = magic == kLlmcMagicU32;
  if (version != (wide ? 7 : 1)) {
    fail(Kind::kData, str(path, " has version ", version, "; only ", wide ? 7 : 1, " is known for magic ", magic));
  }
  const int64_t width = wide ? 4 : 2;
  if (tokens < 0 || kLlmcHeaderBytes + tokens * width != file_bytes) {
    fail(Kind::kData, str(path, " is ", file_bytes, " bytes long; its header of ", kLlmcHeaderBytes, " bytes says ",
                          tokens, " tokens of ", width));
  }
  return {wide ? TokenElement::kUint32 : TokenElement::kUint16, kLlmcHeaderBytes, tokens};
}

std::unique_ptr<TokenStore> open_llmc(const std::string& path, int32_t delimiter, FilePool& pool) {
  const FilePool::Lease lease = pool.open(path);
  const InputFile& file = lease.file();
  std::array<std::byte, kLlmcHeaderBytes> head;
  const auto view = std::span(head).first(std::min(kLlmcHeaderBytes, file.size()));
  file.read_at(0, view);
  const TokenLayout layout = parse_llmc_header(view, file.size(), path);
  ShardInfo info;
  info.name = std::filesystem::path(path).filename().string();
  info.tokens = layout.tokens;
  info.bytes = file.size();
  info.hash = sampled_identity("llmc", file);
  return std::make_unique<DelimitedFile>(path, info, layout, delimiter, DelimiterPlace::kBefore, pool);
}

}  // namespace tokamak
