// Files as other programs write them, byte by byte from their formats' descriptions, for tests.
#pragma once

#include <string>
#include <vector>

#include "data/options.h"
#include "tests/data/fixture.h"

namespace tokamak {

template <class T>
void put_value(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
std::string packed(const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) put_value(out, static_cast<T>(id));
  return out;
}

inline std::string from_hex(const std::string& text) {
  std::string digits, out;
  for (const char c : text) {
    if (c != ' ' && c != '\n') digits += c;
  }
  for (size_t i = 0; i < digits.size(); i += 2) out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return out;
}

inline void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path, Kind::kData);
  file.write(bytes);
  file.close();
}

// An index of sequences with these lengths and byte offsets; document d has sequences [firsts[d], firsts[d + 1]).
inline std::string megatron_index(int code, const std::vector<int32_t>& lengths, const std::vector<int64_t>& pointers,
                                  const std::vector<int64_t>& firsts) {
  std::string out("MMIDIDX\0\0", 9);
  put_value(out, uint64_t{1});
  put_value(out, static_cast<uint8_t>(code));
  put_value(out, static_cast<uint64_t>(lengths.size()));
  put_value(out, static_cast<uint64_t>(firsts.size()));
  for (const int32_t length : lengths) put_value(out, length);
  for (const int64_t pointer : pointers) put_value(out, pointer);
  for (const int64_t first : firsts) put_value(out, first);
  return out;
}

// PREFIX.bin and PREFIX.idx with tokens of type T and its code; documents of more than two tokens have two sequences.
template <class T>
void write_megatron(const std::string& prefix, const Documents& documents, int code) {
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> firsts = {0};
  int64_t bytes = 0;
  const auto sequence = [&](size_t length) {
    lengths.push_back(static_cast<int32_t>(length));
    pointers.push_back(bytes);
    bytes += static_cast<int64_t>(length * sizeof(T));
  };
  for (size_t d = 0; d < documents.size(); ++d) {
    const size_t length = documents[d].size();
    if (length > 2) sequence(2);
    if (length > 0 || d % 2 == 0) sequence(length > 2 ? length - 2 : length);  // some empty documents have no sequence
    firsts.push_back(std::ssize(lengths));
  }
  write_file(prefix + ".bin", packed<T>(concatenated(documents)));
  write_file(prefix + ".idx", megatron_index(code, lengths, pointers, firsts));
}

template <class T>
void write_datatrove(const std::string& path, const Documents& documents) {
  std::string index;
  uint64_t end = 0;
  for (const auto& document : documents) put_value(index, end += document.size());
  write_file(path, packed<T>(concatenated(documents)));
  write_file(path + ".index", index);
}

inline std::string llmc_header(int32_t magic, int32_t version, int64_t tokens) {
  std::string out;
  for (const int32_t word : {magic, version, static_cast<int32_t>(tokens)}) put_value(out, word);
  out.resize(1024, '\0');
  return out;
}

// At most 65535 bytes of text as a gzip file, not compressed.
inline std::string gzip_stored(const std::string& text) {
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);
  put_value(out, static_cast<uint16_t>(text.size()));
  put_value(out, static_cast<uint16_t>(~text.size()));
  uint32_t crc = ~uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  out += text;
  put_value(out, ~crc);
  put_value(out, static_cast<uint32_t>(text.size()));
  return out;
}

inline SourceOptions source_at(const std::string& path, SourceFormat format = SourceFormat::kAuto) {
  SourceOptions source;
  source.path = path;
  source.format = format;
  return source;
}

}  // namespace tokamak
