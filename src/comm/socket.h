// TCP sockets with owners and deadlines. Handles partial transfers, EINTR and SIGPIPE.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace tokamak {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNever = Deadline::max();
Deadline in_seconds(double seconds);
inline constexpr double kSecondsToHeed = 0.1;  // within which a wait notices an interruption

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  // Sends all, or returns false: the other side has closed, or the deadline has passed. errno is the reason; 0: closed.
  bool send(const void* data, int64_t bytes, Deadline deadline) const;
  bool receive(void* data, int64_t bytes, Deadline deadline) const;

  // Sends without waiting: returns the bytes moved, 0 if none can be now, -1 if the connection has ended (errno as
  // above).
  int64_t send_some(const void* data, int64_t bytes, bool more_follows) const;
  int64_t receive_some(void* data, int64_t bytes) const;

  // Lets the connection end with ETIMEDOUT when the peer is silent (no power, no cable) for about `seconds`.
  void give_up_after(double seconds) const;

  std::string peer_address() const;  // numeric
  std::string own_address() const;   // of this side, numeric
  int port() const;                  // of this side

  void never_block() const;  // for a listener: accept_from returns at once

 private:
  Descriptor fd_;
};

// Listens on these addresses, with the same port, or on every interface if there are none. Skips an unavailable one
// (gone, IPv6 off) if another works. Error(kComm) if the port is taken. Port 0: the system chooses.
std::vector<Socket> listen_on(std::vector<std::string> addresses, int port);

// Accepts a connection. An empty Socket, and errno, if there is none: the peer closed it, a resource is short for now,
// or the listener never blocks.
Socket accept_from(const Socket& listener);

// Tries once. Returns an empty Socket and the reason in `why` if that fails. Calls `heed`, which may throw, about ten
// times a second.
Socket connect_to(const std::string& host, int port, Deadline deadline, std::string& why,
                  const std::function<void()>& heed = {});

// Waits until at least one socket is readable or has ended, and returns their indices; none when the deadline has
// passed. Skips empty sockets.
std::vector<int> wait_for_ready(const std::vector<const Socket*>& sockets, Deadline deadline);

// As wait_for_ready(), but returns the index of the first such socket, or -1.
int wait_for_any(const std::vector<const Socket*>& sockets, Deadline deadline);

}  // namespace tokamak
