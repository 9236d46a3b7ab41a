#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "data/stores/source.h"

namespace tokamak {

Dataset::Dataset(std::string directory, Manifest manifest, TokenStores stores, int64_t vocab_size)
    : directory_(std::move(directory)),
      manifest_(std::move(manifest)),
      vocab_size_(manifest_.vocab_size > 0 ? manifest_.vocab_size : vocab_size),
      stores_(std::move(stores)),
      starts_{0} {
  if (manifest_.vocab_size > vocab_size) {
    fail(Kind::kData,
         str("data set ", directory_, " has a vocabulary of ", manifest_.vocab_size, " (tokenizer ",
             manifest_.tokenizer.name, "); the model has ", vocab_size),
         "model.vocab_size must be at least the tokenizer's");
  }
  manifest_.shards.clear();
  for (const auto& store : stores_) {
    const ShardInfo& info = manifest_.shards.emplace_back(store->info());
    starts_.push_back(starts_.back() + info.tokens);
    if (info.max_token_id < vocab_size_) continue;
    fail(Kind::kData, str("shard ", info.name, " of data set ", directory_, " holds token id ", info.max_token_id,
                          "; its vocabulary has ", vocab_size_));
  }
  id_ = manifest_.id();
}

size_t Dataset::store_of(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), token) - starts_.begin()) - 1;
}

void Dataset::read(int64_t first, std::span<int32_t> out) const {
  TOKAMAK_CHECK(first >= 0 && first + std::ssize(out) <= tokens(), directory_, " ", first);
  for (size_t i = store_of(first); !out.empty(); ++i) {
    const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(out), starts_[i + 1] - first));
    stores_[i]->read(first - starts_[i], vocab_size_, out.first(count));
    first += static_cast<int64_t>(count);
    out = out.subspan(count);
  }
}

void Dataset::document_starts(int64_t first, int64_t count, std::vector<int32_t>& out, int64_t base) const {
  TOKAMAK_CHECK(first >= 0 && first + count <= tokens(), directory_, " ", first, " ", count);
  int64_t done = 0;
  for (size_t i = store_of(first); done < count; ++i) {
    const int64_t begin = first + done - starts_[i];
    const int64_t piece = std::min(count - done, stores_[i]->tokens() - begin);
    stores_[i]->document_starts(begin, piece, base + done, out);
    done += piece;
  }
}

int64_t Dataset::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& store : stores_) sum += store->memory_bytes();
  return sum;
}

int64_t Dataset::sequences() const {
  int64_t sum = 0;
  for (const auto& store : stores_) sum += store->sequences();
  return sum;
}

std::vector<int32_t> Dataset::sequence_lengths() const {
  std::vector<int32_t> lengths(sequences());
  std::span<int32_t> rest = lengths;
  for (const auto& store : stores_) {
    const auto its = rest.first(store->sequences());
    store->sequence_lengths(0, its);
    rest = rest.subspan(its.size());
    int64_t sum = 0;
    for (const int32_t length : its) sum += length;
    if (sum == store->tokens()) continue;
    fail(Kind::kData,
         str("the sequences of ", store->path(), " have ", sum, " tokens, the file has ", store->tokens()));
  }
  return lengths;
}

Dataset open_dataset(const SourceOptions& source, int64_t vocab_size, FilePool& pool) {
  OpenSource open = open_source(source, pool);
  for (const auto& store : open.stores) {
    if (store->knows_documents()) continue;
    fail(Kind::kData, str(store->path(), " has no index of documents, and no delimiter between them is known"),
         str("give the source's tokenizer, or the id with delimiter_id (in data.sources, of ", source.path, ")"));
  }
  return {source.path, std::move(open.manifest), std::move(open.stores), vocab_size};
}

Dataset open_dataset(const std::string& path, int64_t vocab_size, FilePool& pool) {
  SourceOptions source;
  source.path = path;
  return open_dataset(source, vocab_size, pool);
}

}  // namespace tokamak
