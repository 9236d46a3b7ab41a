#include "base/listed.h"

#include "base/strings.h"

namespace tokamak {

std::string listed(std::vector<std::string> problems, size_t most) {
  const size_t all = problems.size();
  if (all == 1) return " " + problems[0];
  if (all > most) {
    problems.resize(most);
    problems.push_back(str("and ", all - most, " more"));
  }
  return "\n  " + join(problems, "\n  ");
}

}  // namespace tokamak
