#include "comm/introduce.h"

#include <algorithm>

#include "base/printable.h"
#include "base/strings.h"
#include "comm/secret.h"

namespace tokamak {

namespace {

constexpr double kSecondsToTake = 5;  // for a peer to accept a message
constexpr size_t kLongestReason = 200;

}  // namespace

bool say(const Socket& socket, const Words& words) {
  const std::string frame = frame_of(words);
  return socket.send(frame.data(), std::ssize(frame), in_seconds(kSecondsToTake));
}

std::optional<Words> hear(const Socket& socket, const Patience& patience, FrameLimits limits) {
  FrameReader frame(limits);
  while (true) {
    switch (frame.read(socket)) {
      case FrameReader::State::kWhole:
        return frame.take();
      case FrameReader::State::kEnded:
      case FrameReader::State::kBroken:
        return {};
      case FrameReader::State::kMore:
        break;
    }
    if (std::chrono::steady_clock::now() >= patience.deadline) return {};
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
