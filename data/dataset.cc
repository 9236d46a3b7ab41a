#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

Dataset::Dataset(std::string directory, int64_t vocab_size, FilePool& pool)
    : directory_(std::move(directory)), manifest_(read_manifest(directory_)), id_(manifest_.id()) {
  const std::string hint = "model.vocab_size must be at least the tokenizer's";
  if (manifest_.vocab_size > vocab_size) {
    fail(Kind::kData,
         str("data set ", directory_, " has a vocabulary of ", manifest_.vocab_size, " (tokenizer ",
             manifest_.tokenizer.name, "); the model has ", vocab_size),
         hint);
  }
  vocab_size_ = manifest_.vocab_size;
  starts_.push_back(0);
  for (const ShardInfo& info : manifest_.shards) {
    if (info.max_token_id >= vocab_size_) {
      fail(Kind::kData, str("shard ", info.name, " of data set ", directory_, " holds token id ", info.max_token_id,
                            "; its vocabulary has ", vocab_size_));
    }
    shards_.push_back(std::make_unique<Shard>(directory_, info, manifest_.token_type, pool));
    starts_.push_back(starts_.back() + info.tokens);
  }
}

size_t Dataset::shard_of(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), token) - starts_.begin()) - 1;
}

void Dataset::read(int64_t first, std::span<int32_t> out) const {
  TOKAMAK_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= tokens(), directory_, " ", first);
  for (size_t shard = shard_of(first); !out.empty(); ++shard) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(out.size()), starts_[shard + 1] - first));
    shards_[shard]->read(first - starts_[shard], vocab_size_, out.first(count));
    first += static_cast<int64_t>(count);
    out = out.subspan(count);
  }
}

void Dataset::document_starts(int64_t first, int64_t count, std::vector<int32_t>& out) const {
  TOKAMAK_CHECK(first >= 0 && first + count <= tokens(), directory_, " ", first, " ", count);
  int64_t done = 0;
  for (size_t shard = shard_of(first); done < count; ++shard) {
    const int64_t begin = first + done - starts_[shard];
    const int64_t piece = std::min(count - done, shards_[shard]->tokens() - begin);
    shards_[shard]->document_starts(begin, piece, done, out);
    done += piece;
  }
}

}  // namespace tokamak
