#include "comm/guests.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/printable.h"
#include "base/secret.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kSecondsOfGrace = 1;     // since connecting, before a silent guest may be dropped
constexpr size_t kMostGuests = 128;       // served at one time
constexpr double kSecondsToAccept = 0.1;  // pause before the next accept, if descriptors have run out
constexpr int kMostLogged = 8;

bool lacks_descriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// Sends words that fit the buffers of a fresh connection, so it never waits.
bool say_at_once(const Socket& socket, const Words& words) {
  const std::string frame = frame_of(words);
  return socket.send(frame.data(), std::ssize(frame), in_seconds(0));
}

}  // namespace

Guests::Guests(std::vector<Socket> listeners, GuestRules rules)
    : listeners_(std::move(listeners)), rules_(std::move(rules)), accept_from_now_on_(in_seconds(0)) {
  for (const Socket& listener : listeners_) listener.never_block();
}

void Guests::serve() {
  for (const Socket& listener : listeners_) accept_all(listener);
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    guest = hear(*guest) ? guests_.erase(guest) : std::next(guest);
  }
}

std::vector<const Socket*> Guests::sockets() const {
  std::vector<const Socket*> all;
  const bool accepts = std::chrono::steady_clock::now() >= accept_from_now_on_;
  for (const Socket& listener : listeners_) {
    if (accepts) all.push_back(&listener);
  }
  for (const Guest& guest : guests_) all.push_back(&guest.socket);
  return all;
}

// Serves guests that speak at once, as ranks do, before it makes room for others.
void Guests::accept_all(const Socket& listener) {
  while (std::chrono::steady_clock::now() >= accept_from_now_on_) {
    Socket socket = accept_from(listener);
    if (!socket) {
      if (lacks_descriptors(errno)) {
        make_room();
        accept_from_now_on_ = in_seconds(kSecondsToAccept);
      }
      return;
    }
    guests_.push_back({.socket = std::move(socket), .deadline = in_seconds(rules_.patience)});
    if (hear(guests_.back())) guests_.pop_back();
    if (guests_.size() > kMostGuests) make_room();
  }
}

// Drops the oldest guest that has said nothing, but no recent one, whose first words may be on the way.
void Guests::make_room() {
  if (guests_.empty()) return;
  const Deadline older = in_seconds(rules_.patience - kSecondsOfGrace);
  auto out = std::find_if(guests_.begin(), guests_.end(), [older](const Guest& guest) {
    return guest.deadline < older && !guest.frame.has_begun() && !guest.hello;
  });
  guests_.erase(out == guests_.end() ? guests_.begin() : out);
}

bool Guests::hear(Guest& guest) {
  while (true) {
    const FrameReader::State state = guest.frame.read(guest.socket);
    if (state == FrameReader::State::kWhole) {
      if (introduced(guest, guest.frame.take())) return true;
      continue;
    }
    if (state == FrameReader::State::kMore && std::chrono::steady_clock::now() < guest.deadline) return false;
    if (state != FrameReader::State::kEnded) turn_away(guest, "no rank of ours", "");
    return true;
  }
}

bool Guests::introduced(Guest& guest, const Words& words) {
  if (guest.hello) {
    const bool proven = words.size() == 2 && words[0] == "proof" &&
                        same_digest(words[1], proof_of(Role::kJoins, rules_.secret, *guest.hello, guest.random));
    if (proven) return welcomed(guest, *guest.hello);
    turn_away_rank(guest, *guest.hello, "has another TOKAMAK_SECRET", rules_.self + " has another TOKAMAK_SECRET");
    return true;
  }
  std::optional<Hello> hello = Hello::of(words);
  if (!hello) {
    turn_away(guest, "no rank of ours", "");
  } else if (hello->job != rules_.job) {
    turn_away(guest, str("a rank of '", printable(hello->job), "'"),
              str(rules_.self, " belongs to '", rules_.job, "'"));
  } else if (hello->version != kProtocolVersion) {
    turn_away_rank(guest, *hello, "runs another version of this program",
                   str(rules_.self, " runs another version of this program than ", hello->who()));
  } else if (hello->random.empty() && !rules_.secret.empty()) {
    turn_away_rank(guest, *hello, "has no TOKAMAK_SECRET", rules_.self + " has a TOKAMAK_SECRET, this rank has none");
  } else if (!hello->random.empty() && rules_.secret.empty()) {
    turn_away_rank(guest, *hello, "has a TOKAMAK_SECRET, and this rank has none",
                   rules_.self + " has no TOKAMAK_SECRET, this rank has one");
  } else if (rules_.secret.empty()) {
    return welcomed(guest, *hello);
  } else {
    guest.hello = std::move(hello);
    guest.random = random_word();
    return !say_at_once(guest.socket, {"challenge", guest.random});
  }
  return true;
}

bool Guests::welcomed(Guest& guest, const Hello& hello) {
  if (const std::string objection = rules_.objection(hello); !objection.empty()) {
    turn_away_rank(guest, hello, objection, str(hello.who(), " ", objection));
    return true;
  }
  const std::string proof = rules_.secret.empty() ? "" : proof_of(Role::kListens, rules_.secret, hello, guest.random);
  if (say_at_once(guest.socket, {"expected", proof})) rules_.welcome(hello, std::move(guest.socket));
  return true;
}

void Guests::turn_away(const Guest& guest, const std::string& who, const std::string& reason) {
  if (++logged_ <= kMostLogged) {
    log::warning("turned away by ", rules_.self, ": ", guest.socket.peer_address(), " is ", who,
                 logged_ == kMostLogged ? "; the next ones are not logged" : "");
  }
  say_at_once(guest.socket, {"refused", reason.empty() ? rules_.self + " expected another protocol" : reason});
}

void Guests::turn_away_rank(const Guest& guest, const Hello& hello, const std::string& finding,
                            const std::string& reason) {
  const std::string who = str(hello.who(), " (", guest.socket.peer_address(), ") ", finding);
  if (who != turned_away_) log::warning("turned away by ", rules_.self, ": ", who);
  turned_away_ = who;
  say_at_once(guest.socket, {"refused", reason});
}

}  // namespace tokamak
