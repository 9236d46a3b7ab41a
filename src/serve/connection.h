// A client's connection as the HTTP library's stream. It is buffered. The parts of a request have limits and deadlines,
// each write has a deadline.
#pragma once

#include <httplib.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "comm/socket.h"

namespace tokamak {

struct ConnectionLimits {
  int64_t head_bytes = 32 << 10;
  int64_t body_bytes = 8 << 20;
  double head_seconds = 10;   // from its first byte
  double body_seconds = 10;   // and one more for each 64 KiB
  double idle_seconds = 30;   // between requests
  double write_seconds = 30;  // of a client that does not read
};

class Connection final : public httplib::Stream {
 public:
  Connection(Socket socket, const ConnectionLimits& limits) : socket_(std::move(socket)), limits_(limits) {}

  // Waits for a request; false: there is none, or `ends` is set. Its head may then be read.
  bool begin_request(const std::atomic<bool>& ends);
  void begin_body();

  bool is_connected() const;                    // the client has not closed its side
  void close_after_reply() { closes_ = true; }  // what follows of the request is not read
  bool closes() const { return closes_; }
  // Ends the connection so that the client can still read the reply: what it sends meanwhile is read and dropped.
  void linger();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return is_connected(); }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return 0; }  // the library only checks that select() could take it

 private:
  bool fill(Deadline deadline);

  Socket socket_;
  ConnectionLimits limits_;
  std::array<char, 16384> buffer_;
  size_t at_ = 0, end_ = 0;  // of what was received and not read
  bool in_body_ = false, closes_ = false;
  double started_ = 0;  // the part of the request, in now_seconds()
  int64_t taken_ = 0;   // bytes of it
};

}  // namespace tokamak
