#include "comm/watch.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/service_thread.h"

namespace tokamak {

namespace {

constexpr double kSecondsToSend = 1;
constexpr double kSecondsToReceive = 5;  // for the rest of a frame
constexpr double kSecondsOfSilence = 45;
constexpr double kSecondsToEnd = 3;
constexpr int32_t kLongestMessage = int32_t{1} << 20;  // the calls of a flight record take some kilobytes
constexpr auto kCommCode = static_cast<int>(Kind::kComm);

bool is_silence(int error) { return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH; }

}  // namespace

Watch::Watch(int rank, ControlPeers peers) : rank_(rank), peers_(peers.sockets.size()), hosts_(std::move(peers.hosts)) {
  for (size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].socket = std::move(peers.sockets[r]);
    peers_[r].connected = static_cast<bool>(peers_[r].socket);
  }
  give_up_after(kSecondsOfSilence);
  thread_ = start_service_thread("peer watch", [this] { listen(); });
}

// Rank 0's thread ends when all others have disconnected, the others' when rank 0 has.
void Watch::leave() {
  if (!thread_.joinable()) return;
  if (rank_ == 0) thread_.join();
  for (Peer& peer : peers_) send_frame(peer, Word::kDisconnect, 0);
  if (rank_ != 0) thread_.join();
}

std::string Watch::rank_name(const std::vector<std::string>& hosts, int rank) {
  return str("rank ", rank, " (on ", hosts[rank], ")");
}

std::string Watch::present() const {
  const std::lock_guard lock(state_);
  std::vector<std::string> names;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].connected) names.push_back(name(static_cast<int>(r)));
  }
  return join(names, ", ");
}

void Watch::set_last_words(LastWords last_words) {
  const std::lock_guard lock(ending_);
  last_words_ = std::move(last_words);
}

void Watch::attach(Client* client) {
  const std::lock_guard lock(calling_);
  client_ = client;
}

void Watch::give_up_after(double seconds) {
  for (const Peer& peer : peers_) {
    if (peer.socket) peer.socket.give_up_after(std::min(seconds, kSecondsOfSilence));
  }
}

void Watch::send(const std::string& bytes) {
  for (Peer& peer : peers_) send_frame(peer, Word::kMessage, static_cast<int32_t>(bytes.size()), bytes);
}

// Sends in one write, so that a process stopped meanwhile leaves no partial frame.
void Watch::send_frame(Peer& peer, Word word, int32_t value, const std::string& bytes) {
  if (!peer.socket) return;
  const Header header = {word, value};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame += bytes;
  const std::lock_guard lock(peer.sending);
  if (!peer.takes_all) return;
  peer.takes_all = peer.socket.send(frame.data(), std::ssize(frame), in_seconds(kSecondsToSend));
}

void Watch::listen() {
  const Socket nobody;
  std::vector<const Socket*> watched;
  int present = 0;
  for (const Peer& peer : peers_) {
    watched.push_back(&peer.socket);
    present += peer.socket ? 1 : 0;
  }
  while (present > 0) {
    for (const int from : wait_for_ready(watched, kNever)) {
      if (receive(from)) continue;
      watched[from] = &nobody;
      --present;
    }
  }
}

bool Watch::receive(int from) {
  Peer& peer = peers_[from];
  Header header = {};
  std::string bytes;
  bool whole = peer.socket.receive(&header, sizeof(header), in_seconds(kSecondsToReceive));
  if (whole && header.word == Word::kMessage) {
    whole = 0 <= header.value && header.value <= kLongestMessage;
    bytes.resize(whole ? static_cast<size_t>(header.value) : 0);
    whole = whole && peer.socket.receive(bytes.data(), header.value, in_seconds(kSecondsToReceive));
  }
  if (!whole) {
    end_because_gone(from, errno);
    return false;
  }
  if (header.word == Word::kMessage) {
    const std::lock_guard lock(calling_);
    if (client_ != nullptr) client_->received(from, bytes);
    return true;
  }
  if (header.word == Word::kEnd) {
    // No rank of ours ends with a code outside of this range, and 0 would mean success.
    const int code = 1 <= header.value && header.value <= 255 ? header.value : kCommCode;
    end_because(code, str(name(from), " ended the run, exit code ", header.value), rank_ == 0);
  }
  if (header.word != Word::kDisconnect) {
    end_because(kCommCode, name(from) + " sent a message that is none of ours", true);
  }
  const std::lock_guard lock(state_);
  peer.connected = false;
  return false;
}

void Watch::end_because_gone(int rank, int error) {
  {
    const std::lock_guard lock(calling_);
    if (is_silence(error) && client_ != nullptr && client_->lost(rank)) return;
  }
  end_because(kCommCode, name(rank) + " is gone without disconnecting: killed, crashed, out of memory, or cut off",
              true);
}

void Watch::end_because(int exit_code, const std::string& why, bool speaks) {
  const ExitTimer at_the_latest(kSecondsToEnd, exit_code);
  if (speaks) {
    log::error(why);
    log::flush();
    const std::lock_guard lock(ending_);
    if (last_words_) last_words_(exit_code, why);
  }
  end_all(exit_code);
}

void Watch::end_all(int exit_code) {
  const ExitTimer at_the_latest(kSecondsToEnd, exit_code);
  for (Peer& peer : peers_) send_frame(peer, Word::kEnd, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tokamak
