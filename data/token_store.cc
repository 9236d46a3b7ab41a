#include "data/token_store.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kPositionsAtOnce = int64_t{1} << 20;

}  // namespace

void TokenStore::for_each_part(const std::function<void(const DocumentPart&)>& visit) const {
  std::vector<int32_t> starts;
  int64_t begin = 0;
  for (int64_t at = 0; at < tokens(); at += kPositionsAtOnce) {
    starts.clear();
    document_starts(at, std::min(kPositionsAtOnce, tokens() - at), 0, starts);
    for (const int32_t start : starts) {
      if (at + start > begin) visit({begin, at + start - begin});
      begin = at + start;
    }
  }
  if (tokens() > begin) visit({begin, tokens() - begin});
}

void TokenStore::read(int64_t first, int64_t vocab_size, std::span<int32_t> out) const {
  if (out.empty()) return;
  TOKAMAK_CHECK(first >= 0 && first + std::ssize(out) <= tokens(), path_, ": tokens from ", first, ", ", out.size());
  read_ids(first, out);
  uint32_t largest = 0;
  for (const int32_t id : out) largest = std::max(largest, static_cast<uint32_t>(id));  // negative ids wrap
  if (largest < static_cast<uint64_t>(vocab_size)) return;
  const auto bad = std::find_if(out.begin(), out.end(), [&](int32_t id) { return id < 0 || id >= vocab_size; });
  fail(Kind::kData, str("token ", first + (bad - out.begin()), " of ", path_, " has id ", *bad, "; the vocabulary has ",
                        vocab_size));
}

}  // namespace tokamak
