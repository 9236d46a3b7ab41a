// Creates small data sets, and checks errors.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_writer.h"
#include "data/options.h"

namespace tokamak {

using Documents = std::vector<std::vector<int32_t>>;

inline constexpr int32_t kEos = 2;

// `count` documents of 1 to `longest` tokens (the last of them kEos); the ids count up, so that every token of the
// first 60,000 says where it stands.
inline Documents numbered_documents(int64_t count, int64_t longest, int32_t first_id = 3) {
  Documents documents;
  int32_t id = first_id;
  for (int64_t d = 0; d < count; ++d) {
    std::vector<int32_t> document;
    for (int64_t i = 0; i < (d * 7 + 3) % longest; ++i) document.push_back(3 + id++ % 60000);
    document.push_back(kEos);
    documents.push_back(document);
  }
  return documents;
}

struct FixtureOptions {
  int64_t vocab_size = 65000;
  int64_t shard_tokens = 1'000'000;
  std::string tokenizer_hash = "00112233445566778899aabbccddeeff";
  std::string tokenizer_file = "";
};

inline Manifest write_dataset(const std::string& directory, const Documents& documents, FixtureOptions options = {}) {
  make_directories(directory, Kind::kData);
  Manifest head;
  head.vocab_size = options.vocab_size;
  head.tokenizer = {"fixture", options.tokenizer_hash, options.tokenizer_file};
  head.eos_id = kEos;
  head.tool = "test";
  DatasetWriter writer(directory, head, options.shard_tokens);
  for (const auto& document : documents) writer.append(document);
  return writer.finish();
}

inline std::vector<int32_t> concatenated(const Documents& documents) {
  std::vector<int32_t> tokens;
  for (const auto& document : documents) tokens.insert(tokens.end(), document.begin(), document.end());
  return tokens;
}

inline DataOptions data_options(int64_t sequence_length, SampleOrder order = SampleOrder::kShuffled) {
  DataOptions options;
  options.sequence_length = sequence_length;
  options.order = order;
  return options;
}

// Overwrites one byte of a file with its complement.
inline void damage(const std::string& path, int64_t offset) {
  std::string text = read_text(path, Kind::kData);
  text[static_cast<size_t>(offset)] = static_cast<char>(~text[static_cast<size_t>(offset)]);
  OutputFile file(path, Kind::kData);
  file.write(text);
  file.close();
}

inline void truncate(const std::string& path, int64_t bytes) {
  const std::string text = read_text(path, Kind::kData);
  OutputFile file(path, Kind::kData);
  file.write(std::string_view(text).substr(0, static_cast<size_t>(bytes)));
  file.close();
}

// Runs `body`, which must fail with `kind` and name every one of `words` in its message.
inline void check_fails(Kind kind, const std::vector<std::string>& words, const std::function<void()>& body) {
  try {
    body();
    FAIL_CHECK("did not fail");
  } catch (const Error& e) {
    CHECK(static_cast<int>(e.kind()) == static_cast<int>(kind));
    for (const std::string& word : words) {
      INFO(e.what());
      CHECK(std::string(e.what()).find(word) != std::string::npos);
    }
  }
}

}  // namespace tokamak
