// Verifies a whole data set: every file's size and checksums, the index against the tokens, ids against the vocabulary,
// and the EOS token of every document.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct VerifyReport {
  int64_t shards = 0;
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t bytes = 0;
  std::vector<std::string> problems;  // one sentence each, with file and values; empty: the data set is valid
};

// `progress` is called periodically with the bytes read and the total. A fault in a shard becomes an entry of
// `problems`. Throws Error(kData) only if there is no readable manifest.
VerifyReport verify_dataset(const std::string& directory, const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace tokamak
