#include "train/corruption.h"

#include <algorithm>

#include "base/process.h"
#include "base/strings.h"

namespace tokamak {

Corruption find_corruption(Comm& comm, const std::string& own, const std::string& received) {
  if (comm.max(own.empty() && received.empty() ? 0 : 1) == 0) return {};
  const std::vector<std::string> hosts = comm.gather_all(host_name());
  std::vector<std::string> found = comm.gather_all(own);
  const bool on_the_way = std::all_of(found.begin(), found.end(), [](const auto& text) { return text.empty(); });
  if (on_the_way) found = comm.gather_all(received);
  Corruption corruption;
  std::vector<std::string> texts;
  for (size_t r = 0; r < found.size(); ++r) {
    if (found[r].empty()) continue;
    corruption.ranks.push_back(static_cast<int>(r));
    if (std::find(corruption.hosts.begin(), corruption.hosts.end(), hosts[r]) == corruption.hosts.end()) {
      corruption.hosts.push_back(hosts[r]);
    }
    texts.push_back(str("rank ", r, " (", hosts[r], "): ", on_the_way ? "what it received of " : "", found[r]));
  }
  corruption.what = join(texts, "; ");
  return corruption;
}

}  // namespace tokamak
