// HTTP/1.1 for an Api, by cpp-httplib: a thread for each connection, and limits on connections, sizes and times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/socket.h"
#include "serve/access.h"
#include "serve/api.h"

namespace tokamak {

struct HttpServerOptions {
  int64_t max_connections = 256;
  double drain_seconds = 30;  // for completions under way when the server ends
};

class HttpServer {
 public:
  // `api` outlives this.
  HttpServer(Api& api, const AccessOptions& access, const HttpServerOptions& options);
  ~HttpServer();

  // Accepts connections until `ends` returns true, which is asked about ten times a second. Then completions that run
  // may finish, and the others are cancelled.
  void serve(Socket listener, const std::function<bool()>& ends);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace tokamak
