// Who may use the server: API keys, and the hosts and origins that a browser may name. A page of another site reaches a
// local server through its own DNS name (DNS rebinding) or by its address. It cannot forge these header fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/completion_request.h"

namespace tokamak {

struct AccessOptions {
  std::vector<std::string> hosts;  // names, or names with a port, besides those of this machine's loopback
  int port = 0;                    // of this server
  std::vector<std::string> keys;   // empty: none is needed
};

// The keys of a file: a line each, "key" or "name:key", at least 16 characters. Error(kConfig).
std::vector<std::string> read_keys(const std::string& path);

class AccessRules {
 public:
  explicit AccessRules(const AccessOptions& options);

  // Why a request with these header fields is refused ("": the field is missing).
  std::optional<RequestError> refuse_host(const std::string& host, const std::string& origin) const;
  std::optional<RequestError> refuse_key(const std::string& authorization) const;

 private:
  bool is_own(std::string host) const;

  AccessOptions options_;
  std::string salt_;
  std::vector<std::string> digests_;  // of the keys
};

}  // namespace tokamak
