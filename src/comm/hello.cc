#include "comm/hello.h"

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "base/secret.h"
#include "base/strings.h"

namespace tokamak {

namespace {

struct Field {
  enum Index : size_t { kVersion, kKind, kSize, kRank, kPort, kHost, kJob, kRandom, kCount };
};

constexpr size_t kLongestHost = 64;
constexpr double kSecondsToTake = 5;  // for a peer to accept a message
constexpr size_t kLongestReason = 200;

}  // namespace

std::optional<int> number_of(const std::string& word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

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

bool say(const Socket& socket, const Words& words) {
  const std::string frame = frame_of(words);
  return socket.send(frame.data(), std::ssize(frame), in_seconds(kSecondsToTake));
}

std::optional<Words> hear(const Socket& socket, const Patience& patience, FrameLimits limits) {
  FrameReader frame(limits);
  while (true) {
    const FrameReader::State state = frame.read(socket);
    if (state == FrameReader::State::kWhole) return frame.take();
    if (state != FrameReader::State::kMore || std::chrono::steady_clock::now() >= patience.deadline) return {};
    if (patience.heed) patience.heed();
    wait_for_any({&socket}, std::min(patience.deadline, in_seconds(kSecondsToHeed)));
  }
}

std::string introduce(const Socket& socket, const Hello& own, const std::string& secret, const std::string& whom,
                      const Patience& patience) {
  say(socket, own.words());
  std::optional<Words> answer = hear(socket, patience);
  std::string random;
  if (answer && answer->size() == 2 && answer->front() == "challenge" && !secret.empty()) {
    random = answer->back();
    say(socket, {"proof", proof_of(Role::kJoins, secret, own, random)});
    answer = hear(socket, patience);
  }
  if (!answer) return whom + " left without an answer, or never gave one";
  if (answer->size() != 2 || answer->front() != "expected") return refusal(*answer, whom);
  if (secret.empty()) return "";
  const bool proven = !random.empty() && same_digest(answer->back(), proof_of(Role::kListens, secret, own, random));
  return proven ? "" : str(whom, " does not know the TOKAMAK_SECRET of this rank on ", own.shown_host());
}

std::string refusal(const Words& answer, const std::string& whom) {
  if (answer.front() != "refused") return whom + " does not answer as a rank of this version";
  const bool says_why = answer.size() > 1 && !answer[1].empty();
  return says_why ? printable(answer[1], kLongestReason) : whom + " refuses this rank, without a reason";
}

}  // namespace tokamak
