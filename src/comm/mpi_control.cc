#include "comm/mpi_control.h"

#include <algorithm>
#include <random>

#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"
#include "comm/collective_error.h"

namespace tokamak {

namespace {

constexpr double kSecondsToMeet = 30;

std::string random_token() {
  std::random_device random;  // the system's: nobody can guess it
  return str(std::hex, random(), random(), random(), random());
}

// What rank 0 tells all: host, port, token, addresses.
enum Invitation : size_t { kHost, kPort, kToken, kFirstAddress };

std::string invitation(const Socket& listener) {
  std::vector<std::string> words = {host_name(), str(listener.port()), random_token()};
  for (const std::string& address : local_addresses()) words.push_back(address);
  return join(words, " ");
}

}  // namespace

std::optional<ControlPeers> connect_control(Comm& comm) {
  Socket listener;
  std::string text;
  std::string failure = failure_of([&] {
    if (comm.rank() != 0) return;
    listener = listen_on(0);
    text = invitation(listener);
  });
  comm.broadcast(text, 0);
  ControlPeers peers;
  if (!text.empty()) {
    failure = failure_of([&] {
      const std::vector<std::string> words = split(text, ' ');
      std::vector<std::string> addresses(words.begin() + kFirstAddress, words.end());
      // On rank 0's own host the loopback's, which are last, need no network.
      if (words.at(kHost) == host_name()) std::reverse(addresses.begin(), addresses.end());
      peers = meet_rank_zero({.rank = comm.rank(),
                              .size = comm.size(),
                              .addresses = std::move(addresses),
                              .port = std::stoi(words.at(kPort)),
                              .job = words.at(kToken),
                              .timeout_seconds = kSecondsToMeet},
                             std::move(listener));
    });
  }
  const std::vector<std::string> failures = comm.gather_all(failure);
  const auto first = std::find_if(failures.begin(), failures.end(), [](const std::string& f) { return !f.empty(); });
  if (first == failures.end()) return peers;
  if (comm.rank() == 0) {
    log::warning("no control connections beside MPI: ", shared_error(*first).what(),
                 "; a rank that dies or hangs is noticed by the launcher alone");
  }
  return std::nullopt;
}

}  // namespace tokamak
