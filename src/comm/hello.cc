#include "comm/hello.h"

#include <charconv>

#include "base/printable.h"
#include "base/strings.h"
#include "comm/secret.h"

namespace tokamak {

namespace {

struct Field {
  enum Index : size_t { kVersion, kKind, kSize, kRank, kPort, kHost, kJob, kRandom, kCount };
};

constexpr size_t kLongestHost = 64;

std::optional<int> number_of(const std::string& word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

}  // namespace

Words Hello::words() const { return {version, kind, str(size), str(rank), str(port), host, job, random}; }

std::optional<Hello> Hello::of(const Words& words) {
  if (words.size() != Field::kCount && words.size() != Field::kRandom) return {};
  const std::optional<int> size = number_of(words[Field::kSize]), rank = number_of(words[Field::kRank]),
                           port = number_of(words[Field::kPort]);
  if (!size || !rank || !port || *port < 0 || *port > 65535) return {};
  return Hello{.version = words[Field::kVersion],
               .kind = words[Field::kKind],
               .size = *size,
               .rank = *rank,
               .port = *port,
               .host = words[Field::kHost],
               .job = words[Field::kJob],
               .random = words.size() > Field::kRandom ? words[Field::kRandom] : ""};
}

std::string Hello::shown_host() const { return printable(host, kLongestHost); }

std::string Hello::who() const { return str("rank ", rank, " on ", shown_host()); }

std::string proof_of(Role role, const std::string& secret, const Hello& hello, const std::string& random) {
  Words said = hello.words();
  said.insert(said.begin(), {role == Role::kJoins ? "joins" : "listens", random});
  return keyed_digest(secret, frame_of(said));
}

}  // namespace tokamak
