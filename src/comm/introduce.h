// The joining side of a connection: the words of hello.h, and the wait for what a peer says then.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/hello.h"
#include "comm/socket.h"

namespace tokamak {

// How long to wait; `heed` is called about ten times a second, and may throw.
struct Patience {
  Deadline deadline = kNever;
  std::function<void()> heed = {};
};

bool say(const Socket& socket, const Words& words);

// The next frame, or nothing: the peer has gone, speaks of something else, or the deadline is over.
std::optional<Words> hear(const Socket& socket, const Patience& patience, FrameLimits limits = {});

// Introduces a rank, and proves on both sides that the secret is known, where there is one. Returns why the rank may not
// join, fit to be printed; "" where it may. `whom`: what the peer is called in that.
std::string introduce(const Socket& socket, const Hello& own, const std::string& secret, const std::string& whom,
                      const Patience& patience);

// Why a peer refuses, by an answer that is not the one that was hoped for.
std::string refusal(const Words& answer, const std::string& whom);

}  // namespace tokamak
