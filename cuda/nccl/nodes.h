// Which ranks share a node.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tokamak {

// Ranks grouped by node, nodes in the order of their first ranks; `names` has each rank's node, at least one entry. A
// single group if nodes differ in size or have one rank each: then a two-level reduction is impossible.
inline std::vector<std::vector<int>> nodes_of(const std::vector<std::string>& names) {
  std::vector<std::vector<int>> nodes;
  std::vector<int> all;
  for (const std::string& name : names) {
    const auto rank = static_cast<int>(all.size());
    all.push_back(rank);
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const std::vector<int>& members) { return names[members.front()] == name; });
    if (node == nodes.end()) {
      nodes.push_back({rank});
    } else {
      node->push_back(rank);
    }
  }
  const size_t each = nodes.front().size();
  const bool even = std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node.size() == each; });
  return even && each > 1 ? nodes : std::vector<std::vector<int>>{all};
}

}  // namespace tokamak
