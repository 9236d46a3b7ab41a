// TCP sockets of the operating system: owned, and with deadlines. Partial transfers and EINTR are dealt with here, and
// nobody is killed by SIGPIPE.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNever = Deadline::max();
Deadline in_seconds(double seconds);
inline constexpr double kSecondsToHeed = 0.1;  // until a wait notices an interruption

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

  // All of it, or false: the other side has gone, or the deadline has passed. errno says which; 0 is a closed
  // connection.
  bool send(const void* data, int64_t bytes, Deadline deadline) const;
  bool receive(void* data, int64_t bytes, Deadline deadline) const;

  // What goes without waiting: bytes moved, 0 where none can now, -1 where the connection has ended (errno as above).
  int64_t send_some(const void* data, int64_t bytes, bool more_follows) const;
  int64_t receive_some(void* data, int64_t bytes) const;

  // A peer whose host has fallen silent (power, cable) is given up after about so long, by errno ETIMEDOUT.
  void give_up_after(double seconds) const;

  std::string peer_address() const;  // as numbers
  std::string own_address() const;   // the same, of this side
  int port() const;                  // of this side

  void never_block() const;  // a listener: accept_from returns at once

 private:
  int fd_ = -1;
};

// On every interface. Error(kComm) if the port is taken. Port 0: the system chooses.
Socket listen_on(int port);

// On these addresses of this host, the same port on each; on every interface where there are none. One that cannot be
// had (it has gone, IPv6 is off) is left out, if another can.
std::vector<Socket> listen_on(const std::vector<std::string>& addresses, int port);

// A connection that nobody waited for; an empty Socket, and errno, where there is none: it went away again, the network
// or this process is short of something for now, or the listener never blocks.
Socket accept_from(const Socket& listener);

// One attempt; an empty Socket and the reason in `why` where it fails. `heed` is called about ten times a second, and
// may throw.
Socket connect_to(const std::string& host, int port, Deadline deadline, std::string& why,
                  const std::function<void()>& heed = {});

// Until one or more of them can be read, or have ended: their indices; none when the deadline has passed. Empty sockets
// are left out.
std::vector<int> wait_for_ready(const std::vector<const Socket*>& sockets, Deadline deadline);

// Until one of them can be read, or has ended: its index; -1 when the deadline has passed. Empty sockets are left out.
int wait_for_any(const std::vector<const Socket*>& sockets, Deadline deadline);

}  // namespace tokamak
