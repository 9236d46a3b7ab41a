// A data set open for reading: its token stores as one sequence of tokens, with the positions where documents begin.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/file_pool.h"
#include "data/manifest.h"
#include "data/options.h"
#include "data/token_store.h"

namespace tokamak {

class Dataset {
 public:
  // `stores` may have any format. `manifest` says what the tokens mean; the constructor replaces its shards by each
  // store's info(), so that id() covers all stores. Error(kData) if ids do not fit the manifest's vocabulary, or that
  // vocabulary does not fit the model's, which takes its place if it is unknown (0).
  Dataset(std::string directory, Manifest manifest, TokenStores stores, int64_t vocab_size);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  const std::string& id() const { return id_; }
  int64_t tokens() const { return starts_.back(); }

  // Tokens [first, first + out.size()), across stores if necessary. Thread-safe.
  void read(int64_t first, std::span<int32_t> out) const;
  // Appends base + p - first for each position p in [first, first + count) at which a document begins, in ascending
  // order.
  void document_starts(int64_t first, int64_t count, std::vector<int32_t>& out, int64_t base = 0) const;
  int64_t memory_bytes() const;  // of all stores
  int64_t sequences() const;
  // The lengths of all sequences, in stored order. Error(kData) if they do not add up to tokens().
  std::vector<int32_t> sequence_lengths() const;

 private:
  size_t store_of(int64_t token) const;

  std::string directory_;
  Manifest manifest_;
  std::string id_;
  int64_t vocab_size_;  // ids are below
  TokenStores stores_;
  std::vector<int64_t> starts_;  // (stores + 1): the position of each store's first token, and the end
};

// The data set of a source (stores/source.h), for a model of `vocab_size` rows. `pool` must outlive the data set.
// Error(kData) if the files are of no known format, or damaged as far as opening sees. Likewise if ids exceed the
// vocabulary, or nothing says where documents begin.
Dataset open_dataset(const SourceOptions& source, int64_t vocab_size, FilePool& pool);
// One of ours, or any that needs no options.
Dataset open_dataset(const std::string& path, int64_t vocab_size, FilePool& pool);

}  // namespace tokamak
