#include "data/dedup/clusters.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace tokamak {

Clusters::Clusters(std::span<const int64_t> documents) {
  int64_t total = 0;
  for (const int64_t count : documents) {
    firsts_.push_back(static_cast<uint32_t>(total));
    total += count;
    if (total > UINT32_MAX) {
      fail(Kind::kData,
           str("there are ", total, " or more documents; duplicates are found among ", UINT32_MAX, " at most"),
           "prepare the input in several runs, each of which keeps one of its duplicates");
    }
  }
  parents_.resize(static_cast<size_t>(total));
  std::iota(parents_.begin(), parents_.end(), 0U);
}

uint32_t Clusters::root_of(uint32_t index) {
  while (parents_[index] != index) {
    parents_[index] = parents_[parents_[index]];
    index = parents_[index];
  }
  return index;
}

// The lower index becomes the root, so clusters do not depend on the order of the pairs.
void Clusters::join(DocumentPair pair) {
  const uint32_t a = root_of(index_of(pair.first)), b = root_of(index_of(pair.second));
  parents_[std::max(a, b)] = std::min(a, b);
}

std::vector<ClusterMember> Clusters::members(std::span<const std::vector<uint32_t>> weights) {
  struct Best {
    DocumentId document;
    uint32_t weight = 0, documents = 0;
  };
  std::unordered_map<uint32_t, Best> clusters;  // by root; only those of two documents or more
  const auto each = [&](const auto& take) {
    for (uint32_t part = 0; part < weights.size(); ++part)
      for (uint32_t number = 0; number < weights[part].size(); ++number)
        take(DocumentId{part, number}, root_of(index_of({part, number})), weights[part][number]);
  };
  each([&](DocumentId id, uint32_t root, uint32_t) {
    if (index_of(id) != root) clusters.try_emplace(root);
  });
  int64_t count = 0;
  each([&](DocumentId id, uint32_t root, uint32_t weight) {
    const auto found = clusters.find(root);
    if (found == clusters.end()) return;
    Best& best = found->second;
    if (best.documents == 0 || weight > best.weight) best.document = id, best.weight = weight;
    ++best.documents;
    ++count;
  });
  std::vector<ClusterMember> members;
  members.reserve(static_cast<size_t>(count));
  each([&](DocumentId id, uint32_t root, uint32_t) {
    const auto found = clusters.find(root);
    if (found != clusters.end()) members.push_back({id, found->second.document, found->second.documents});
  });
  return members;
}

}  // namespace tokamak
