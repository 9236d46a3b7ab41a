#include "doctor/same_config.h"

#include "base/hash.h"

namespace tokamak::doctor {

namespace {

// The first line of `text` that is not in the same place of `expected`.
std::string first_difference(const std::string& text, const std::string& expected) {
  const std::vector<std::string> own = split(text, '\n'), other = split(expected, '\n');
  for (size_t i = 0; i < own.size(); ++i) {
    if (i < other.size() && own[i] == other[i]) continue;
    return str("'", trim(own[i]), "' where rank 0 has '", i < other.size() ? trim(other[i]) : "", "'");
  }
  return "an end that rank 0's has not";
}

}  // namespace

CheckResult check_config(Comm& comm, const RankHosts& peers, const std::function<std::string()>& read) {
  CheckResult result{.name = "config", .kind = Kind::kConfig};
  std::string text, expected;
  result.ranks = gather_facts(comm, [&] {
    text = read();
    Facts facts;
    facts.set("hash", xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size()))));
    return facts;
  });
  if (report_errors(result, peers)) return result;
  expected = text;
  comm.broadcast(expected, 0);
  const std::vector<Facts> differences = gather_facts(comm, [&] {
    Facts facts;
    if (text != expected) facts.set("difference", first_difference(text, expected));
    return facts;
  });
  int differing = 0;
  for (const std::string& host : peers.hosts()) {
    for (const int rank : peers.ranks_of(host)) {
      const Facts& facts = differences[static_cast<size_t>(rank)];
      if (!facts.has("difference")) continue;
      ++differing;
      result.fail(host, str(peers.name(rank), " reads another config: ", facts.text("difference")));
    }
  }
  result.value = differing == 0
                     ? str("the same on ", peers.size(), " rank(s), ", result.ranks.front().text("hash").substr(0, 12))
                     : str(differing, " of ", peers.size(), " ranks read another one than rank 0");
  return result;
}

}  // namespace tokamak::doctor
