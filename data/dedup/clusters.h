// Pairs of near copies -> clusters, of which one document is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dedup/bands.h"

namespace tokamak {

// A document in a cluster of at least two.
struct ClusterMember {
  DocumentId document;
  DocumentId kept;         // the cluster's document of the greatest weight, the first of equals; may be itself
  uint32_t documents = 0;  // in the cluster
};

// Joins documents by pairs, in any order: the clusters are the same. Takes 4 bytes a document.
class Clusters {
 public:
  // The number of documents of each part. Error(kData) if there are 2^32 or more in all.
  explicit Clusters(std::span<const int64_t> documents);

  void join(DocumentPair pair);

  // `weights`: of each part's documents. The members are in the order of their documents.
  std::vector<ClusterMember> members(std::span<const std::vector<uint32_t>> weights);

 private:
  uint32_t index_of(DocumentId id) const { return firsts_[id.part] + id.number; }
  uint32_t root_of(uint32_t index);

  std::vector<uint32_t> firsts_;   // the index of each part's first document
  std::vector<uint32_t> parents_;  // a root is its own; it is the first document of its tree
};

}  // namespace tokamak
