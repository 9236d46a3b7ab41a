#include "comm/rendezvous.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/strings.h"
#include "comm/guests.h"
#include "comm/hello.h"
#include "comm/interfaces.h"

namespace tokamak {

namespace {

constexpr double kSecondsToSpeak = 5;     // for the next message of a peer, sent or received
constexpr double kSecondsToAttempt = 10;  // for one connection; then retries
constexpr double kSecondsOfMany = 2;      // for one connection, if there are other addresses to try
constexpr double kSecondsToConnect = 60;  // for connections among the ranks, once all have joined
constexpr double kSecondsToAgain = 0.1;   // from a failed attempt to the next
constexpr double kSecondsOfSignals = 1;   // between the first rank and the last that receives a signal
constexpr size_t kBytesOfRank = 300;      // at most, for a rank's entry in rank 0's list
constexpr size_t kLongestPlace = 200;     // characters, in messages
constexpr size_t kLongestAddress = 64;
constexpr size_t kMostNamed = 8;  // missing ranks
constexpr int kFewRanks = 8;

bool is_over(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

// Allows a socket per lane and one for control with each rank, and some files for everything else.
void allow_open_files(int size) {
  const rlim_t needed = (kLanes + 1) * static_cast<rlim_t>(size) + 256;
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur < needed || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    fail(Kind::kComm, str(size, " ranks need ", needed, " open files, but the limit is ", limit.rlim_max), "ulimit -n");
  }
}

std::string data_kind(size_t lane) { return str("data", lane); }

class Gathering {
 public:
  explicit Gathering(const RendezvousOptions& options)
      : options_(options),
        deadline_(in_seconds(options.timeout_seconds)),
        tell_at_(in_seconds(options.silent_seconds)) {
    allow_open_files(options.size);
    const size_t ranks = options.size;
    for (std::vector<Socket>& lane : peers_.data) lane.resize(ranks);
    control_.resize(ranks);
    hosts_.resize(ranks);
    addresses_.resize(ranks);
    ports_.resize(ranks);
    hosts_[options.rank] = printable(host_name(), kLongestAddress);
  }

  Peers run() {
    has_data_ = true;
    if (options_.rank == 0) listen(listen_on(addresses_of_rank_zero(), options_.port));
    meet_rank_zero();
    deadline_ = in_seconds(kSecondsToConnect);
    connect_downwards();
    accept_upwards();
    return std::move(peers_);
  }

  ControlPeers run_control(std::vector<Socket> listeners) {
    if (options_.rank == 0) listen(std::move(listeners));
    meet_rank_zero();
    return std::move(peers_.control);
  }

 private:
  std::string self() const { return str("rank ", options_.rank, " of ", options_.size); }
  std::string place() const {
    return str(printable(join(options_.addresses, " or "), kLongestPlace), ":", options_.port);
  }
  std::string rank_zero() const { return str("rank 0 at ", place()); }
  std::string name(size_t rank) const {
    return hosts_[rank].empty() ? str("rank ", rank) : str("rank ", rank, " on ", hosts_[rank]);
  }

  // ---- waiting ----

  void heed_interruption() const {
    if (!options_.interrupted || !options_.interrupted()) return;
    fail(Kind::kStopped, self() + ": stopped by a signal while it waited for the other ranks; nothing has begun");
  }

  // Logs a long wait once: on rank 0 and, with few ranks, which may be started by hand, on each.
  void tell_of_wait(const std::string& what) {
    if (!is_over(tell_at_)) return;
    tell_at_ = kNever;
    if (options_.rank == 0 || options_.size <= kFewRanks) log::info(self(), " waits for ", what);
  }

  // As wait_for_any(), but returns after kSecondsToHeed at the latest, and first throws if interrupted.
  int wait_a_moment(const std::vector<const Socket*>& sockets, Deadline deadline) const {
    heed_interruption();
    return wait_for_any(sockets, std::min(deadline, in_seconds(kSecondsToHeed)));
  }

  void pause(double seconds) const {
    for (const Deadline end = in_seconds(seconds); !is_over(end);) wait_a_moment({}, end);
  }

  // Another rank has gone, perhaps by a signal to all that has yet to arrive here.
  void await_signal() const {
    if (options_.interrupted) pause(kSecondsOfSignals);
  }

  Patience until(Deadline deadline) const {
    return {.deadline = deadline, .heed = [this] { heed_interruption(); }};
  }

  // ---- guests ----

  void listen(std::vector<Socket> listeners) {
    guests_.emplace(
        std::move(listeners),
        GuestRules{.self = options_.rank == 0 ? rank_zero() : name(options_.rank),
                   .job = options_.job,
                   .secret = options_.secret,
                   .objection = [this](const Hello& hello) { return objection_to(hello); },
                   .welcome = [this](const Hello& hello, Socket socket) { welcome(hello, std::move(socket)); }});
  }

  // Returns false past the deadline. Fails if a rank that has joined leaves, or sends anything.
  bool await_guests() {
    while (missing_ > 0) {
      if (is_over(deadline_)) return false;
      if (!connects_data_) tell_of_wait(str(absent(), ", ", options_.timeout_seconds, " s at most"));
      std::vector<const Socket*> sockets;
      for (const Socket& socket : control_) sockets.push_back(&socket);
      const std::vector<const Socket*> guests = guests_->sockets();
      sockets.insert(sockets.end(), guests.begin(), guests.end());
      const int ready = wait_a_moment(sockets, deadline_);
      if (0 <= ready && ready < options_.size) {
        await_signal();
        const std::string reason = name(ready) + " has left while the ranks were being connected";
        if (options_.rank == 0) refuse_all(reason);
        fail(Kind::kComm, str(self(), ": ", reason));
      }
      guests_->serve();
    }
    return true;
  }

  // Why a rank may not join, as words after "rank 3 on n2 "; "": it may.
  std::string objection_to(const Hello& hello) const {
    if (hello.size != options_.size) {
      return str("was started as one of ", hello.size, " ranks, rank ", options_.rank, " as one of ", options_.size);
    }
    if (hello.rank < 0 || hello.rank >= options_.size) return str("does not exist among ", options_.size, " ranks");
    const size_t rank = hello.rank;
    if (hello.kind == kControlKind && options_.rank == 0) {
      const bool is_there = hello.rank == 0 || control_[rank];
      return is_there ? str("is a second rank ", rank, ": the first is on ", hosts_[rank]) : "";
    }
    for (size_t lane = 0; connects_data_ && hello.rank > options_.rank && lane < kLanes; ++lane) {
      if (hello.kind == data_kind(lane) && !peers_.data[lane][rank]) return "";
    }
    return "has no connection due here";
  }

  void welcome(const Hello& hello, Socket socket) {
    --missing_;
    const size_t rank = hello.rank;
    if (connects_data_) {
      size_t lane = 0;  // objection() has found it
      while (hello.kind != data_kind(lane)) ++lane;
      peers_.data[lane][rank] = std::move(socket);
      return;
    }
    addresses_[rank] = socket.peer_address();
    ports_[rank] = hello.port;
    hosts_[rank] = hello.shown_host();
    control_[rank] = std::move(socket);
  }

  // ---- rank 0 ----

  std::vector<std::string> addresses_of_rank_zero() const {
    return addresses_to_listen_on(options_.addresses.front(), options_.one_host);
  }

  void meet_rank_zero() { options_.rank == 0 ? receive_all() : go_to_rank_zero(); }

  void receive_all() {
    missing_ = options_.size - 1;
    if (!await_guests()) {
      const std::string& others = guests_->turned_away();
      refuse_all(str("waited ", options_.timeout_seconds, " s at ", place(), " for ", absent(),
                     others.empty() ? "" : "; turned away: " + others));
    }
    Words list = {"welcome"};
    for (size_t r = 0; r < hosts_.size(); ++r) {
      list.insert(list.end(), {hosts_[r], addresses_[r], str(ports_[r])});
    }
    for (const Socket& socket : control_) {
      if (socket) say(socket, list);  // fails if a rank has left meanwhile, which shows when it does not connect
    }
  }

  std::string absent() const {
    Words ranks;
    for (int r = 1; r < options_.size; ++r) {
      if (!control_[r]) ranks.push_back(str(r));
    }
    const size_t count = ranks.size();
    if (count > kMostNamed) ranks.resize(kMostNamed);
    return str(count == 1 ? "rank " : "ranks ", join(ranks, ", "), count > kMostNamed ? ", ..." : "", " of ",
               options_.size);
  }

  [[noreturn]] void refuse_all(const std::string& reason) const {
    for (const Socket& socket : control_) {
      if (socket) say(socket, {"refused", reason});
    }
    fail(Kind::kComm, str(self(), ": ", reason));
  }

  // ---- the others ----

  // Why this rank may not join; "" if it may.
  std::string join_by(const Socket& socket, const std::string& kind, int port, const std::string& whom,
                      Deadline deadline) const {
    const Hello own = {.version = kProtocolVersion,
                       .kind = kind,
                       .size = options_.size,
                       .rank = options_.rank,
                       .port = port,
                       .host = host_name(),
                       .job = options_.job,
                       .random = options_.secret.empty() ? "" : random_word()};
    return introduce(socket, own, options_.secret, whom, until(deadline));
  }

  void join_or_fail(const Socket& socket, const std::string& kind, int port, const std::string& whom,
                    Deadline deadline) const {
    const std::string reason = join_by(socket, kind, port, whom, deadline);
    if (reason.empty()) return;
    await_signal();
    fail(Kind::kComm, str(self(), ": ", reason));
  }

  void go_to_rank_zero() {
    Socket& zero = control_[0];
    zero = options_.addresses.size() == 1 ? connect_to_only_address() : find_rank_zero();
    const auto ranks = hosts_.size();
    // Rank 0 times out first, and names the missing ranks.
    const std::optional<Words> answer =
        hear(zero, until(in_seconds(options_.timeout_seconds + kSecondsToSpeak)),
             {.bytes = std::max(FrameLimits().bytes, kBytesOfRank * ranks), .words = 1 + 3 * ranks});
    if (!answer) {
      await_signal();
      fail(Kind::kComm, str(self(), ": ", rank_zero(), " left before all ranks had come"));
    }
    if (answer->front() != "welcome" || answer->size() != 1 + 3 * ranks) {
      fail(Kind::kComm, str(self(), ": ", refusal(*answer, rank_zero())));
    }
    for (size_t r = 0; r < ranks; ++r) read_list(r, &(*answer)[1 + 3 * r], zero);
  }

  void read_list(size_t rank, const std::string* words, const Socket& zero) {
    hosts_[rank] = printable(words[0], kLongestAddress);
    addresses_[rank] = printable(words[1], kLongestAddress);
    // A rank on rank 0's host has a loopback address there; from here it is at rank 0's address.
    if (is_loopback(addresses_[rank])) addresses_[rank] = zero.peer_address();
    if (rank == 0) {
      addresses_[0] = options_.addresses.front();
      ports_[0] = options_.port;
      return;
    }
    ports_[rank] = number_of(words[2]).value_or(0);
    if (has_data_ && (ports_[rank] < 1 || ports_[rank] > 65535)) {
      fail(Kind::kComm, str(self(), ": ", rank_zero(), " names no port of ", name(rank)));
    }
  }

  // Opens the port for the ranks above this one on the address from which this rank reached rank 0. If that address is
  // the loopback's, it uses the addresses of rank 0's port.
  int open_data_port(const Socket& zero) {
    if (!has_data_) return 0;
    const std::string own = zero.own_address();
    std::vector<Socket> listeners =
        listen_on(is_loopback(own) ? addresses_of_rank_zero() : std::vector<std::string>{own}, 0);
    const int port = listeners.front().port();
    listen(std::move(listeners));
    return port;
  }

  Socket connect_to_only_address() {
    Socket socket = connect_patiently(options_.addresses.front(), options_.port);
    join_or_fail(socket, kControlKind, open_data_port(socket), rank_zero(),
                 in_seconds(options_.timeout_seconds + kSecondsToSpeak));
    return socket;
  }

  // Some of the addresses may lead to another host, or another program.
  Socket find_rank_zero() {
    std::string why;
    while (!is_over(deadline_)) {
      for (const std::string& address : options_.addresses) {
        Socket socket = connect_to(address, options_.port, std::min(deadline_, in_seconds(kSecondsOfMany)), why,
                                   [this] { heed_interruption(); });
        if (!socket) continue;
        why = join_by(socket, kControlKind, 0, rank_zero(), in_seconds(2 * kSecondsToSpeak));
        if (why.empty()) return socket;
      }
      tell_of_wait(str(rank_zero(), " (", why, ")"));
      pause(kSecondsToAgain);
    }
    fail(Kind::kComm, str(self(), ": rank 0 is not at ", place(), " (", why, ")"));
  }

  Socket connect_patiently(const std::string& host, int port) {
    std::string why;
    while (true) {
      const Deadline attempt = std::min(deadline_, in_seconds(kSecondsToAttempt));
      Socket socket = connect_to(host, port, attempt, why, [this] { heed_interruption(); });
      if (socket) return socket;
      if (is_over(deadline_)) break;
      tell_of_wait(str(printable(host), ":", port, " (", why, ")"));
      pause(kSecondsToAgain);
    }
    fail(Kind::kComm, str(self(), ": cannot reach ", printable(host), ":", port, " (", why, ")"),
         "is rank 0 running there, with the same MASTER_ADDR and MASTER_PORT, and no firewall in between? It listens "
         "on the addresses to which MASTER_ADDR resolves on its host");
  }

  // ---- each with each ----

  void connect_downwards() {
    for (size_t r = 0; r < static_cast<size_t>(options_.rank); ++r) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        Socket& socket = peers_.data[lane][r];
        socket = connect_patiently(addresses_[r], ports_[r]);
        join_or_fail(socket, data_kind(lane), 0, name(r), deadline_);
      }
    }
  }

  void accept_upwards() {
    connects_data_ = true;
    const int all = (options_.size - 1 - options_.rank) * static_cast<int>(kLanes);
    missing_ = all;
    if (await_guests()) return;
    fail(Kind::kComm, str(self(), ": ", missing_, " of ", all, " connections of the ranks above it have not come"));
  }

  const RendezvousOptions& options_;
  Deadline deadline_;
  Deadline tell_at_;
  std::optional<Guests> guests_;
  bool has_data_ = false;       // ports for data are open
  bool connects_data_ = false;  // all have joined, and the ranks of higher number connect
  int missing_ = 0;             // ranks that have not joined
  Peers peers_;
  std::vector<Socket>& control_ = peers_.control.sockets;
  std::vector<std::string>& hosts_ = peers_.control.hosts;
  std::vector<std::string> addresses_;
  std::vector<int> ports_;
};

}  // namespace

Peers meet(const RendezvousOptions& options) { return Gathering(options).run(); }

ControlPeers meet_rank_zero(const RendezvousOptions& options, std::vector<Socket> listeners) {
  return Gathering(options).run_control(std::move(listeners));
}

}  // namespace tokamak
