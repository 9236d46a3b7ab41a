#include "hf_files.h"

#include "base/strings.h"
#include "tokenizer/hf/byte_map.h"

namespace tokamak {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string printable_byte(int byte) {
  std::string text;
  append_printable_bytes(std::string(1, static_cast<char>(byte)), text);
  return text;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

std::vector<std::string> with_bytes(const std::vector<std::string>& pieces) {
  std::vector<std::string> all;
  for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
  all.insert(all.end(), pieces.begin(), pieces.end());
  return all;
}

}  // namespace

std::string byte_level_json(const std::vector<std::string>& pieces, const std::vector<std::string>& merges,
                            const std::string& added_tokens, const std::string& members) {
  std::vector<std::string> vocab, rules;
  for (int byte = 0; byte < 256; ++byte) vocab.push_back(str(quoted(printable_byte(byte)), ":", byte));
  for (const std::string& piece : pieces) vocab.push_back(str(quoted(piece), ":", vocab.size()));
  for (const std::string& merge : merges) rules.push_back(quoted(merge));
  const std::string level = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  return str(R"({"version":"1.0","added_tokens":)", added_tokens, R"(,"pre_tokenizer":)", level, R"(,"decoder":)",
             level, members, R"(,"model":{"type":"BPE","vocab":{)", join(vocab, ","), R"(},"merges":[)",
             join(rules, ","), "]}}");
}

std::string tiktoken_text(const std::vector<std::string>& pieces) {
  std::string text;
  int64_t rank = 0;
  for (const std::string& piece : with_bytes(pieces)) append(text, str(base64(piece), " ", rank++, "\n"));
  return text;
}

std::string tekken_json(const std::vector<std::string>& pieces) {
  std::vector<std::string> vocab;
  for (const std::string& piece : with_bytes(pieces)) {
    vocab.push_back(str(R"({"rank":)", vocab.size(), R"(,"token_bytes":")", base64(piece), R"(","token_str":null})"));
  }
  return str(R"({"config":{"pattern":"[a-z]+","num_vocab_tokens":)", vocab.size(), R"(,"default_vocab_size":)",
             vocab.size() + 20, R"(,"default_num_special_tokens":20,"version":"v3"},"vocab":[)", join(vocab, ","),
             "]}");
}

}  // namespace tokamak
