#include "comm/mpi_control.h"

#include <algorithm>

#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/strings.h"
#include "comm/collective_error.h"
#include "comm/interfaces.h"

namespace tokamak {

namespace {

constexpr double kSecondsToMeet = 30;

// Rank 0's message to all: host, port, token, addresses.
enum Invitation : size_t { kHost, kPort, kToken, kFirstAddress };

std::string invitation(const Socket& listener, const std::vector<std::string>& addresses) {
  std::vector<std::string> words = {host_name(), str(listener.port()), random_word()};
  words.insert(words.end(), addresses.begin(), addresses.end());
  return join(words, " ");
}

bool are_on_one_host(Comm& comm) {
  const std::vector<std::string> networks = comm.gather_all(network_of_process());
  return std::all_of(networks.begin(), networks.end(), [&](const std::string& one) { return one == networks[0]; });
}

// Checks that all ranks have one secret: a launcher may pass environment variables to some hosts only.
void expect_same_secret(Comm& comm, const std::string& token, const std::string& secret) {
  const std::vector<std::string> digests = comm.gather_all(keyed_digest(secret, token));
  const std::vector<std::string> hosts = comm.gather_all(printable(host_name()));
  const auto other = std::find_if(digests.begin(), digests.end(),
                                  [&](const std::string& one) { return !same_digest(one, digests[0]); });
  if (other == digests.end()) return;
  const size_t rank = other - digests.begin();
  throw SharedError(Kind::kConfig,
                    str("rank ", rank, " on ", hosts[rank], " has another TOKAMAK_SECRET than rank 0 on ", hosts[0],
                        ", or one of them has none"),
                    "mpirun -x TOKAMAK_SECRET passes it on to other hosts");
}

}  // namespace

std::optional<ControlPeers> connect_control(Comm& comm, const std::string& secret) {
  const bool one_host = are_on_one_host(comm);
  std::vector<Socket> listeners;
  std::string text;
  std::string failure = failure_of([&] {
    if (comm.rank() != 0) return;
    const std::vector<std::string> addresses = one_host ? std::vector<std::string>{"127.0.0.1"} : local_addresses();
    listeners = listen_on(one_host ? addresses : std::vector<std::string>(), 0);
    text = invitation(listeners.front(), addresses);
  });
  comm.broadcast(text, 0);
  ControlPeers peers;
  if (!text.empty()) {
    const std::vector<std::string> words = split(text, ' ');
    expect_same_secret(comm, words.at(kToken), secret);
    failure = failure_of([&] {
      std::vector<std::string> addresses(words.begin() + kFirstAddress, words.end());
      // On rank 0's own host the loopback addresses, which come last, need no network.
      if (words.at(kHost) == host_name()) std::reverse(addresses.begin(), addresses.end());
      peers = meet_rank_zero({.rank = comm.rank(),
                              .size = comm.size(),
                              .addresses = std::move(addresses),
                              .port = std::stoi(words.at(kPort)),
                              .job = "control beside MPI",
                              .secret = words.at(kToken) + secret,
                              .timeout_seconds = kSecondsToMeet},
                             std::move(listeners));
    });
  }
  const std::vector<std::string> failures = comm.gather_all(failure);
  const auto first = std::find_if(failures.begin(), failures.end(), [](const std::string& f) { return !f.empty(); });
  if (first == failures.end()) return peers;
  if (comm.rank() == 0) {
    log::warning("no control connections besides MPI: ", shared_error(*first).what(),
                 "; only the launcher notices a rank that dies or hangs");
  }
  return std::nullopt;
}

}  // namespace tokamak
