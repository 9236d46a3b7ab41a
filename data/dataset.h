// A data set open for reading: its shards as one sequence of tokens, with the positions where documents begin.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/file_pool.h"
#include "data/manifest.h"
#include "data/shard_reader.h"

namespace tokamak {

class Dataset {
 public:
  // Error(kData) if the manifest is missing or damaged, a shard's file is missing or has a wrong size, or ids do not
  // fit the model's vocabulary. Opens no shard. `pool` must outlive the data set.
  Dataset(std::string directory, int64_t vocab_size, FilePool& pool);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  const std::string& id() const { return id_; }
  int64_t tokens() const { return starts_.back(); }

  // Tokens [first, first + out.size()), across shards if necessary. Thread-safe.
  void read(int64_t first, std::span<int32_t> out) const;
  // Appends p - first for each position p in [first, first + count) at which a document begins, in ascending order.
  void document_starts(int64_t first, int64_t count, std::vector<int32_t>& out) const;

  const std::vector<std::unique_ptr<Shard>>& shards() const { return shards_; }

 private:
  size_t shard_of(int64_t token) const;

  std::string directory_;
  Manifest manifest_;
  std::string id_;
  int64_t vocab_size_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<int64_t> starts_;  // (shards + 1): the position of each shard's first token, and the end
};

}  // namespace tokamak
