// Tokens on disk in some format, with the positions where documents begin. A data set concatenates several. Each format
// is an implementation of this interface; `Shard` is ours. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/shard_writer.h"

namespace tokamak {

// Tokens [first, first + tokens) of a store. They continue the document of the part before, unless that one `ends`.
struct DocumentPart {
  int64_t first = 0;
  int64_t tokens = 0;
  bool ends = true;  // its document
};

class TokenStore {
 public:
  // `path` names the file of the tokens in errors. `info` counts tokens and documents. Its two hashes are the store's
  // identity: stores with equal hashes have equal tokens and documents.
  TokenStore(std::string path, ShardInfo info) : path_(std::move(path)), info_(std::move(info)) {}
  virtual ~TokenStore() = default;

  const std::string& path() const { return path_; }
  const ShardInfo& info() const { return info_; }
  int64_t tokens() const { return info_.tokens; }

  // Tokens [first, first + out.size()). Error(kData) for damage and for an id outside [0, vocab_size).
  void read(int64_t first, int64_t vocab_size, std::span<int32_t> out) const;

  // Appends base + (p - first) for each position p in [first, first + count) at which a document begins, in ascending
  // order. If several (empty) documents begin at one position, it appends that position once.
  virtual void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const = 0;

  // False if nothing says where documents begin. info().documents is 0 if their number is unknown.
  virtual bool knows_documents() const { return true; }

  // All documents in order, for one pass over the store. Reads the whole index, and Error(kData) if it contradicts
  // itself or the tokens. The default finds documents by document_starts(), which leaves out empty ones.
  virtual void for_each_part(const std::function<void(const DocumentPart&)>& visit) const;

  // Compares checksums of the format's own with the whole files, and says which. Error(kData) for damage. `progress`:
  // bytes that were read.
  virtual std::string check_sums(const std::function<void(int64_t)>& /*progress*/) const { return "without checksums"; }

  // Megatron orders sequences. A document has one, unless the format says otherwise; they fill the store without gaps.
  virtual int64_t sequences() const { return info_.documents; }
  // The lengths of sequences [first, first + out.size()). Error(kData) if one is negative. A store without an index of
  // lengths finds them by document_starts.
  virtual void sequence_lengths(int64_t first, std::span<int32_t> out) const;

 private:
  virtual void read_ids(int64_t first, std::span<int32_t> out) const = 0;  // of a range within the store, not empty

  std::string path_;
  ShardInfo info_;
};

using TokenStores = std::vector<std::unique_ptr<TokenStore>>;

}  // namespace tokamak
