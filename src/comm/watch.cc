#include "comm/watch.h"

#include <signal.h>

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

namespace {

enum class Word : int32_t { kDisconnect = 1, kEnd = 2 };

constexpr double kSecondsToSay = 1;

}  // namespace

struct Watch::Message {
  Word word;
  int32_t exit_code;

  bool send(const Socket& to) const { return to.send(this, sizeof(*this), in_seconds(kSecondsToSay)); }
};

Watch::Watch(int rank, std::vector<Socket> control, std::vector<std::string> hosts)
    : rank_(rank), control_(std::move(control)), hosts_(std::move(hosts)) {
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { listen(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Rank 0's thread ends when all others have disconnected, theirs when rank 0 has.
Watch::~Watch() {
  const Message disconnect = {Word::kDisconnect, 0};
  if (rank_ == 0) thread_.join();
  for (const Socket& socket : control_) {
    if (socket) disconnect.send(socket);
  }
  if (rank_ != 0) thread_.join();
}

std::string Watch::name(int rank) const { return str("rank ", rank, " (on ", hosts_[static_cast<size_t>(rank)], ")"); }

void Watch::listen() const {
  const Socket nobody;
  std::vector<const Socket*> watched;
  int present = 0;
  for (const Socket& socket : control_) {
    watched.push_back(&socket);
    present += socket ? 1 : 0;
  }
  while (present > 0) {
    const int from = wait_for_any(watched, kNever);
    const Socket*& socket = watched[static_cast<size_t>(from)];
    Message message = {};
    if (!socket->receive(&message, sizeof(message), in_seconds(kSecondsToSay))) {
      log::error(name(from), " is gone without disconnecting: killed, crashed, out of memory, or cut off");
      log::flush();
      abort(static_cast<int>(Kind::kComm));
    }
    if (message.word == Word::kEnd) {
      if (rank_ == 0) log::error(name(from), " ended the run, exit code ", message.exit_code);
      log::flush();
      abort(message.exit_code);
    }
    socket = &nobody;
    --present;
  }
}

void Watch::abort(int exit_code) const {
  for (const Socket& socket : control_) {
    if (socket) Message{Word::kEnd, exit_code}.send(socket);
  }
  std::_Exit(exit_code);
}

}  // namespace tokamak
