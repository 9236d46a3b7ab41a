#include "doctor/check.h"

#include <array>
#include <map>
#include <set>

#include "base/strings.h"

namespace tokamak::doctor {

namespace {

constexpr const char* kError = "error";           // the fact with the message of a rank's exception
constexpr const char* kErrorKind = "error_kind";  // its Kind, if it was an Error

}  // namespace

double Facts::number(const std::string& name) const {
  const auto value = values_.find(name);
  return value != values_.end() && value->is_number() ? value->get<double>() : 0;
}

std::string Facts::text(const std::string& name) const {
  const auto value = values_.find(name);
  if (value == values_.end()) return "";
  if (value->is_string()) return value->get<std::string>();
  return value->is_number_integer() ? str(value->get<int64_t>()) : str(value->get<double>());
}

std::string Facts::encode() const {
  std::string bytes;
  nlohmann::ordered_json::to_cbor(values_, bytes);
  return bytes;
}

Facts Facts::decode(const std::string& bytes) {
  Facts facts;
  facts.values_ = nlohmann::ordered_json::from_cbor(bytes);
  return facts;
}

const char* name_of(Status status) {
  constexpr std::array<const char*, 4> kNames = {"ok", "warn", "fail", "skipped"};
  return kNames.at(static_cast<size_t>(status));
}

void CheckResult::add(Note note) {
  if (status != Status::kFail) status = note.status;
  notes.push_back(std::move(note));
}

std::vector<double> CheckResult::numbers(const std::string& fact) const {
  std::vector<double> all;
  for (const Facts& facts : ranks) all.push_back(facts.number(fact));
  return all;
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
  std::set<std::string> seen;
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (seen.insert(host(rank)).second) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> RankHosts::ranks_of(const std::string& host) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (hosts_[rank] == host) ranks.push_back(rank);
  }
  return ranks;
}

std::string RankHosts::name(int rank) const { return str("rank ", rank, " (", host(rank), ")"); }

std::string RankHosts::names(const std::vector<int>& ranks) const {
  if (ranks.size() == 1) return name(ranks.front());
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(str(rank));
  return str("ranks ", join(numbers, " "), " (", host(ranks.front()), ")");
}

bool measure(CheckResult& result, Comm& comm, const RankHosts& peers, const std::function<void(Facts&)>& take) {
  Facts own;
  try {
    take(own);
  } catch (const Error& error) {
    own.set(kError, error.hint().empty() ? error.what() : str(error.what(), " (", error.hint(), ")"));
    own.set(kErrorKind, error.exit_code());
  } catch (const std::exception& error) {
    own.set(kError, error.what());
  }
  std::vector<int> failed;
  const std::vector<std::string> all = comm.gather_all(own.encode());
  result.ranks.resize(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Facts facts = Facts::decode(all[rank]);
    if (facts.has(kError)) failed.push_back(static_cast<int>(rank));
    if (facts.has(kErrorKind)) result.kind = static_cast<Kind>(static_cast<int>(facts.number(kErrorKind)));
    result.ranks[rank].add(facts);
  }
  // If all ranks fail, no host is blamed. A single rank has none to compare with: only a device fault blames its host.
  const bool shared =
      comm.size() == 1 ? result.kind != Kind::kDevice : failed.size() == static_cast<size_t>(comm.size());
  for (const int rank : failed) {
    result.fail(shared ? "" : peers.host(rank), str(peers.name(rank), ": ", result.ranks[rank].text(kError)));
    if (shared) break;
  }
  return failed.empty();
}

void expect_equal(CheckResult& result, const RankHosts& peers, const std::string& fact, Status status,
                  const std::string& consequence) {
  std::map<std::string, int> counts;
  for (const Facts& facts : result.ranks) ++counts[facts.text(fact)];
  std::string common = result.ranks.front().text(fact);
  for (const auto& [value, count] : counts) {
    if (count > counts[common]) common = value;
  }
  const auto named = [](const std::string& text) { return text.empty() ? "none" : text; };
  for (const std::string& host : peers.hosts()) {
    std::map<std::string, std::vector<int>> ranks_with;
    for (const int rank : peers.ranks_of(host)) ranks_with[result.ranks[rank].text(fact)].push_back(rank);
    ranks_with.erase(common);
    for (const auto& [value, ranks] : ranks_with) {
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

}  // namespace tokamak::doctor
