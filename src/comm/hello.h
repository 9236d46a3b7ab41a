// The first words of a rank on a connection, and the proof that it knows the secret, in frames (frame.h):
//   joins:    VERSION KIND SIZE RANK PORT HOST JOB RANDOM     RANDOM is "" without a secret
//   listens:  "challenge" RANDOM                              only if both have a secret.
//   joins:    "proof" DIGEST
//   listens:  "expected" DIGEST                               DIGEST is "" without a secret; or "refused" REASON.
//
// The secret is the key of a digest, which covers the role, both random words and the whole hello. So a digest is valid
// for this connection only. The joining rank proves first, so that a stranger gets no digest to try secrets against.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/frame.h"
#include "comm/socket.h"

namespace tokamak {

inline constexpr const char* kProtocolVersion = "4";  // version of all messages between ranks
inline constexpr const char* kControlKind = "control";

std::optional<int> number_of(const std::string& word);  // nullopt unless the whole word is a number

struct Hello {
  std::string version, kind;
  int size = 0;
  int rank = -1;
  int port = 0;
  std::string host;  // unchanged, since the digest covers it
  std::string job;
  std::string random;

  Words words() const;
  // nullopt if the words are not a hello. A hello of an older version may lack the random word.
  static std::optional<Hello> of(const Words& words);
  std::string shown_host() const;
  std::string who() const;  // "rank 3 on n2", printable
};

enum class Role { kJoins, kListens };

// `random` is the random word of the listening rank.
std::string proof_of(Role role, const std::string& secret, const Hello& hello, const std::string& random);

// How long to wait. A wait calls `heed`, which may throw, about ten times a second.
struct Patience {
  Deadline deadline = kNever;
  std::function<void()> heed = {};
};

bool say(const Socket& socket, const Words& words);

// Returns the next frame; nullopt if the peer has gone, sent something else, or the deadline has passed.
std::optional<Words> hear(const Socket& socket, const Patience& patience, FrameLimits limits = {});

// Introduces a rank; both sides prove that they know the secret, if there is one. Returns why the rank may not join,
// printable, or "". `whom` names the peer in that text.
std::string introduce(const Socket& socket, const Hello& own, const std::string& secret, const std::string& whom,
                      const Patience& patience);

// Returns the reason in a peer's answer that is not the expected one.
std::string refusal(const Words& answer, const std::string& whom);

}  // namespace tokamak
