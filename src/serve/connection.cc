#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace tokamak {

namespace {

constexpr int64_t kBodyOverhead = 1 << 20;  // for the frames of a chunked body
constexpr double kLinger = 2;               // seconds
constexpr int64_t kLingerBytes = 16 << 20;

}  // namespace

bool Connection::begin_request(const std::atomic<bool>& ends) {
  const Deadline idle = in_seconds(limits_.idle_seconds);
  while (at_ == end_ && !fill(std::min(idle, in_seconds(kSecondsToHeed)))) {
    if (ends || closes_ || std::chrono::steady_clock::now() >= idle) return false;
  }
  in_body_ = false;
  started_ = now_seconds();
  taken_ = 0;
  return true;
}

void Connection::begin_body() {
  in_body_ = true;
  started_ = now_seconds();
  taken_ = 0;
}

bool Connection::is_connected() const {
  pollfd one{socket_.fd(), POLLRDHUP, 0};
  return ::poll(&one, 1, 0) >= 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

// False at the deadline, and at the end of the connection, which then closes.
bool Connection::fill(Deadline deadline) {
  if (wait_for_any({&socket_}, deadline) < 0) return false;
  const int64_t received = socket_.receive_some(buffer_.data(), std::ssize(buffer_));
  if (received < 0) closes_ = true;
  if (received <= 0) return false;
  at_ = 0;
  end_ = static_cast<size_t>(received);
  return true;
}

ssize_t Connection::read(char* data, size_t size) {
  const int64_t most = in_body_ ? limits_.body_bytes + kBodyOverhead : limits_.head_bytes;
  const double allowed = in_body_ ? limits_.body_seconds + double(taken_) / 65536 : limits_.head_seconds;
  const auto left = [&] { return started_ + allowed - now_seconds(); };
  while (at_ == end_ && !closes_ && left() > 0) fill(in_seconds(left()));
  if (at_ == end_ || taken_ >= most || left() <= 0) {
    closes_ = true;
    return -1;
  }
  const size_t count = std::min({size, end_ - at_, static_cast<size_t>(most - taken_)});
  std::memcpy(data, buffer_.data() + at_, count);
  at_ += count;
  taken_ += static_cast<int64_t>(count);
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  if (socket_.send(data, static_cast<int64_t>(size), in_seconds(limits_.write_seconds)))
    return static_cast<ssize_t>(size);
  closes_ = true;
  return -1;
}

void Connection::linger() {
  ::shutdown(socket_.fd(), SHUT_WR);
  const Deadline deadline = in_seconds(kLinger);
  closes_ = false;
  for (int64_t dropped = 0; dropped < kLingerBytes && fill(deadline);) dropped += static_cast<int64_t>(end_);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = socket_.peer_address();
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip = socket_.own_address();
  port = socket_.port();
}

}  // namespace tokamak
