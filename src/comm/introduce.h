// The joining side of a connection: sends the words of hello.h and waits for the answers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/hello.h"
#include "comm/socket.h"

namespace tokamak {

// How long to wait; calls `heed` about ten times a second, which may throw.
struct Patience {
  Deadline deadline = kNever;
  std::function<void()> heed = {};
};

bool say(const Socket& socket, const Words& words);

// The next frame. nullopt if the peer has gone, sent something else, or the deadline has passed.
std::optional<Words> hear(const Socket& socket, const Patience& patience, FrameLimits limits = {});

// Introduces a rank; both sides prove that they know the secret, if there is one. Returns why the rank may not join,
// printable, or "". `whom` names the peer in that text.
std::string introduce(const Socket& socket, const Hello& own, const std::string& secret, const std::string& whom,
                      const Patience& patience);

// The reason of a peer's unexpected answer.
std::string refusal(const Words& answer, const std::string& whom);

}  // namespace tokamak
