#include "doctor/check.h"

#include <algorithm>
#include <map>

namespace tokamak::doctor {

const char* name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kWarn:
      return "warn";
    case Status::kFail:
      return "fail";
    case Status::kSkipped:
      return "skipped";
  }
  return "";
}

void CheckResult::add(Note note) {
  if (note.status == Status::kFail) status = Status::kFail;
  if (note.status == Status::kWarn && status != Status::kFail) status = Status::kWarn;
  notes.push_back(std::move(note));
}

CheckResult skipped(const std::string& name, const std::string& why) {
  return {.name = name, .status = Status::kSkipped, .value = why};
}

std::vector<std::string> RankHosts::hosts() const {
  std::vector<std::string> once;
  for (const int rank : first_ranks()) once.push_back(host(rank));
  return once;
}

std::vector<int> RankHosts::first_ranks() const {
  std::map<std::string, int> first;
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (first.emplace(host(rank), rank).second) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> RankHosts::ranks_of(const std::string& name) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (host(rank) == name) ranks.push_back(rank);
  }
  return ranks;
}

std::string RankHosts::name(int rank) const { return str("rank ", rank, " (", host(rank), ")"); }

std::string RankHosts::names(const std::vector<int>& ranks) const {
  if (ranks.size() == 1) return name(ranks.front());
  std::vector<std::string> numbers;
  numbers.reserve(ranks.size());
  for (const int rank : ranks) numbers.push_back(str(rank));
  return str("ranks ", join(numbers, " "), " (", host(ranks.front()), ")");
}

bool report_errors(CheckResult& result, const RankHosts& peers) {
  // What all ranks fail at is no host's fault; of a single rank only its device tells the difference.
  const auto failed =
      std::count_if(result.ranks.begin(), result.ranks.end(), [](const Facts& f) { return f.has(kError); });
  for (int rank = 0; rank < static_cast<int>(result.ranks.size()); ++rank) {
    const Facts& facts = result.ranks[static_cast<size_t>(rank)];
    if (!facts.has(kError)) continue;
    if (facts.has(kErrorKind)) result.kind = static_cast<Kind>(static_cast<int>(facts.number(kErrorKind)));
    const bool alone = peers.size() == 1 ? result.kind == Kind::kDevice : failed < peers.size();
    result.fail(alone ? peers.host(rank) : "", str(peers.name(rank), ": ", facts.text(kError)));
    if (!alone) break;  // once is enough
  }
  return failed > 0;
}

void expect_equal(CheckResult& result, const RankHosts& peers, const std::string& fact, Status status,
                  const std::string& consequence) {
  std::map<std::string, int> counts;
  for (const Facts& facts : result.ranks) ++counts[facts.text(fact)];
  std::string common = result.ranks.front().text(fact);
  for (const auto& [value, count] : counts) {
    if (count > counts[common]) common = value;
  }
  for (const std::string& host : peers.hosts()) {
    std::map<std::string, std::vector<int>> others;
    for (const int rank : peers.ranks_of(host)) {
      const std::string value = result.ranks[static_cast<size_t>(rank)].text(fact);
      if (value != common) others[value].push_back(rank);
    }
    for (const auto& [value, ranks] : others) {
      const auto named = [](const std::string& text) { return text.empty() ? "none" : text; };
      result.add(
          {status, host,
           str(peers.names(ranks), ": ", fact, " ", named(value), ", most ranks: ", named(common), "; ", consequence)});
    }
  }
}

std::string device_model(const std::string& description) {
  const size_t comma = description.find(", ");
  const bool numbered = starts_with(description, "GPU ") && comma != std::string::npos &&
                        description.find_first_not_of("0123456789", 4) == comma;
  return numbered ? "GPU" + description.substr(comma) : description;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace tokamak::doctor
