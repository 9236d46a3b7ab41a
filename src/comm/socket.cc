#include "comm/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int64_t kMostAtOnce = int64_t{1} << 30;

// A part of the silent time passes before the first probe, the rest during this many probes.
constexpr int kProbes = 5;

constexpr int kAttemptsAtPort = 16;  // to find a port that is free on several addresses

// accept(2): transient errors of the connection, the network or this process's limits.
constexpr std::array kPassing = {EAGAIN,       ECONNABORTED, EPERM,       EMFILE,      ENFILE,    ENOBUFS,
                                 ENOMEM,       EPROTO,       ENETDOWN,    ENOPROTOOPT, EHOSTDOWN, ENONET,
                                 EHOSTUNREACH, EOPNOTSUPP,   ENETUNREACH, ETIMEDOUT};

int milliseconds_until(Deadline deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

// Polls again after a signal. Returns the number of ready sockets, 0 past the deadline.
int poll_until(pollfd* polled, size_t count, Deadline deadline) {
  while (true) {
    const int ready = ::poll(polled, count, milliseconds_until(deadline));
    if (ready >= 0) return ready;
    if (errno != EINTR) fail_errno(Kind::kComm, "poll");
  }
}

bool wait_until_ready(int fd, int16_t events, Deadline deadline) {
  pollfd polled = {.fd = fd, .events = events, .revents = 0};
  if (poll_until(&polled, 1, deadline) > 0) return true;
  errno = ETIMEDOUT;
  return false;
}

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof(value)); }

Socket configured(Socket socket) {
  set(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::string as_number(Address& address) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address.get(), address.length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  const std::string number = text;
  return starts_with(number, "::ffff:") ? number.substr(7) : number;  // IPv4 through a dual-stack socket
}

// If nothing listens on a port of its own host, a process that connects to it may be connected to itself.
bool is_connected_to_itself(int fd) {
  Address here, there;
  ::getsockname(fd, here.get(), &here.length);
  ::getpeername(fd, there.get(), &there.length);
  return here.length == there.length && std::memcmp(&here.storage, &there.storage, here.length) == 0;
}

bool connected_in_time(int fd, const addrinfo& address, Deadline deadline, const std::function<void()>& heed) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return false;
    while (!wait_until_ready(fd, POLLOUT, std::min(deadline, in_seconds(kSecondsToHeed)))) {
      if (heed) heed();
      if (std::chrono::steady_clock::now() < deadline) continue;
      errno = ETIMEDOUT;
      return false;
    }
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    if (error != 0) return false;
  }
  if (!is_connected_to_itself(fd)) return true;
  errno = ECONNREFUSED;
  return false;
}

bool listens(const Socket& socket, Address& address) {
  set(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);  // serves IPv4 too
  return ::bind(socket.fd(), address.get(), address.length) == 0 && ::listen(socket.fd(), SOMAXCONN) == 0;
}

// The socket address of a numeric address; without a family if `number` is not numeric.
Address address_of(const std::string& number, int port) {
  Address address;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(number.c_str(), str(port).c_str(), &hints, &found) != 0) return address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

}  // namespace

Deadline in_seconds(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

int64_t Socket::send_some(const void* data, int64_t bytes, bool more_follows) const {
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more_follows ? MSG_MORE : 0);
  while (true) {
    const ssize_t sent = ::send(fd_.get(), data, std::min(bytes, kMostAtOnce), flags);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

int64_t Socket::receive_some(void* data, int64_t bytes) const {
  while (true) {
    const ssize_t received = ::recv(fd_.get(), data, std::min(bytes, kMostAtOnce), MSG_DONTWAIT);
    if (received > 0) return received;
    if (received == 0) {
      errno = 0;
      return -1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

bool Socket::send(const void* data, int64_t bytes, Deadline deadline) const {
  for (const auto* from = static_cast<const char*>(data); bytes > 0;) {
    const int64_t sent = send_some(from, bytes, false);
    if (sent < 0 || (sent == 0 && !wait_until_ready(fd_.get(), POLLOUT, deadline))) return false;
    from += sent;
    bytes -= sent;
  }
  return true;
}

bool Socket::receive(void* data, int64_t bytes, Deadline deadline) const {
  for (auto* to = static_cast<char*>(data); bytes > 0;) {
    const int64_t received = receive_some(to, bytes);
    if (received < 0 || (received == 0 && !wait_until_ready(fd_.get(), POLLIN, deadline))) return false;
    to += received;
    bytes -= received;
  }
  return true;
}

void Socket::give_up_after(double seconds) const {
  const auto probe = std::max(1, static_cast<int>(seconds / 9));
  set(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, static_cast<int>(seconds) - kProbes * probe));
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, probe);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(seconds * 1000));  // if data are in flight
}

std::string Socket::peer_address() const {
  Address there;
  return ::getpeername(fd_.get(), there.get(), &there.length) == 0 ? as_number(there) : "?";
}

std::string Socket::own_address() const {
  Address here;
  return ::getsockname(fd_.get(), here.get(), &here.length) == 0 ? as_number(here) : "?";
}

int Socket::port() const {
  Address here;
  ::getsockname(fd_.get(), here.get(), &here.length);
  const bool v6 = here.storage.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&here.storage)->sin6_port
                  : reinterpret_cast<sockaddr_in*>(&here.storage)->sin_port);
}

void Socket::never_block() const { ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK); }

std::vector<Socket> listen_on(std::vector<std::string> addresses, int port) {
  if (addresses.empty()) addresses = {Socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) ? "::" : "0.0.0.0"};
  std::vector<Socket> sockets;
  int error = 0;
  for (int attempt = 0; attempt < kAttemptsAtPort; ++attempt) {
    sockets.clear();
    error = 0;
    for (const std::string& number : addresses) {
      Address address = address_of(number, port != 0 || sockets.empty() ? port : sockets.front().port());
      Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket && listens(socket, address)) {
        sockets.push_back(std::move(socket));
      } else if (error != EADDRINUSE) {
        error = errno;
      }
    }
    const bool taken = error == EADDRINUSE;
    if (!sockets.empty() && !taken) return sockets;
    if (port != 0 || !taken) break;
  }
  errno = error;
  fail_errno(Kind::kComm, str("cannot listen on port ", port, " of ", join(addresses, ", ")),
             "another run on this host? Choose another MASTER_PORT");
}

Socket accept_from(const Socket& listener) {
  while (true) {
    const int fd = ::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return configured(Socket(fd));
    if (errno == EINTR) continue;
    if (std::find(kPassing.begin(), kPassing.end(), errno) != kPassing.end()) return {};
    fail_errno(Kind::kComm, "cannot accept a connection");
  }
}

Socket connect_to(const std::string& host, int port, Deadline deadline, std::string& why,
                  const std::function<void()>& heed) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), str(port).c_str(), &hints, &found); code != 0) {
    why = ::gai_strerror(code);
    return {};
  }
  Socket result;
  for (const addrinfo* address = found; address != nullptr && !result; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket && connected_in_time(socket.fd(), *address, deadline, heed)) {
      result = configured(std::move(socket));
    } else {
      why = std::strerror(errno);
    }
  }
  ::freeaddrinfo(found);
  return result;
}

std::vector<int> wait_for_ready(const std::vector<const Socket*>& sockets, Deadline deadline) {
  std::vector<pollfd> polled;
  // poll(2) skips a negative fd.
  for (const Socket* socket : sockets) polled.push_back({.fd = socket->fd(), .events = POLLIN, .revents = 0});
  std::vector<int> ready;
  if (poll_until(polled.data(), polled.size(), deadline) == 0) return ready;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) ready.push_back(static_cast<int>(i));
  }
  return ready;
}

int wait_for_any(const std::vector<const Socket*>& sockets, Deadline deadline) {
  const std::vector<int> ready = wait_for_ready(sockets, deadline);
  return ready.empty() ? -1 : ready.front();
}

}  // namespace tokamak
