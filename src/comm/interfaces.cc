#include "comm/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/strings.h"

namespace tokamak {

namespace {

std::string as_number(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

// The numeric addresses of the name; empty if it does not resolve.
std::vector<std::string> resolved(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> numbers;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return numbers;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::string number = as_number(one->ai_addr, one->ai_addrlen);
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(std::move(number));
  }
  ::freeaddrinfo(found);
  return numbers;
}

}  // namespace

std::vector<std::string> local_addresses() {
  std::vector<std::string> others, loopback;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6) {  // a link-local address is useless to other hosts
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
    }
    const std::string text = as_number(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (text.empty()) continue;
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : others).push_back(text);
  }
  ::freeifaddrs(all);
  others.insert(others.end(), loopback.begin(), loopback.end());
  return others;
}

bool is_loopback(const std::string& address) { return starts_with(address, "127.") || address == "::1"; }

std::vector<std::string> addresses_to_listen_on(const std::string& name, bool one_host) {
  const std::vector<std::string> here = local_addresses();
  std::vector<std::string> network, loopback;
  for (const std::string& address : resolved(name)) {
    if (is_loopback(address)) {
      loopback.push_back(address);
    } else if (std::find(here.begin(), here.end(), address) != here.end()) {
      network.push_back(address);
    }
  }
  if (!network.empty()) return network;
  return one_host || name == "localhost" || is_loopback(name) ? loopback : network;
}

std::string network_of_process() {
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/net", space.data(), space.size());
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return str(boot, " ", std::string_view(space.data(), std::max<ssize_t>(length, 0)));
}

}  // namespace tokamak
