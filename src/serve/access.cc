#include "serve/access.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "base/secret.h"

namespace tokamak {

namespace {

constexpr size_t kShortestKey = 16;

}  // namespace

std::vector<std::string> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  for (const std::string& line : split(read_text(path, Kind::kConfig), '\n')) {
    const std::string_view entry = trim(line);
    if (entry.empty() || entry.starts_with('#')) continue;
    const std::string key(trim(entry.substr(entry.find(':') + 1)));
    if (key.size() < kShortestKey) {
      fail(Kind::kConfig,
           str("--api-key-file ", path, ": key ", keys.size() + 1, " is shorter than ", kShortestKey, " characters"),
           "for example the output of `openssl rand -hex 24`");
    }
    keys.push_back(key);
  }
  if (keys.empty()) fail(Kind::kConfig, str("--api-key-file ", path, " has no key"));
  return keys;
}

AccessRules::AccessRules(const AccessOptions& options) : options_(options), salt_(random_word()) {
  for (const char* own : {"localhost", "127.0.0.1", "[::1]"}) options_.hosts.emplace_back(own);
  for (const std::string& key : options.keys) digests_.push_back(keyed_digest(salt_, key));
  options_.keys.clear();
}

bool AccessRules::is_own(std::string host) const {
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::any_of(options_.hosts.begin(), options_.hosts.end(),
                     [&](const std::string& own) { return host == own || host == str(own, ":", options_.port); });
}

std::optional<RequestError> AccessRules::refuse_host(const std::string& host, const std::string& origin) const {
  if (!is_own(host))
    return RequestError{403, "the Host of the request is not this server; see --allow-host", "", "host"};
  if (origin.empty()) return std::nullopt;
  const size_t name = origin.find("://");
  const bool is_http = origin.starts_with("http://") || origin.starts_with("https://");
  if (is_http && is_own(origin.substr(name + 3))) return std::nullopt;
  return RequestError{403, "the Origin of the request is another site", "", "origin"};
}

// Digests of equal length are compared, all of them in any case, so that time shows nothing of a key.
std::optional<RequestError> AccessRules::refuse_key(const std::string& authorization) const {
  if (digests_.empty()) return std::nullopt;
  constexpr std::string_view kScheme = "Bearer ";
  const bool has_scheme = authorization.starts_with(kScheme);
  const std::string digest = keyed_digest(salt_, has_scheme ? authorization.substr(kScheme.size()) : "");
  bool is_known = false;
  for (const std::string& known : digests_) is_known |= same_digest(known, digest);
  if (has_scheme && is_known) return std::nullopt;
  return RequestError{401, "the API key is missing or wrong", "", "invalid_api_key"};
}

}  // namespace tokamak
