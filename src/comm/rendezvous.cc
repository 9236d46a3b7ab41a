#include "comm/rendezvous.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'O', 'K', 'A', 'M', 'A', 'K', '1'};
constexpr const char* kVersion = "3";                  // of what the ranks say to each other, here and later
constexpr uint32_t kLongestFrame = uint32_t{1} << 26;  // the list of all ranks
constexpr double kSecondsToSpeak = 5;                  // after connecting; who says nothing is no rank
constexpr double kSecondsToAttempt = 10;               // one connection; then once more
constexpr double kSecondsOfMany = 2;                   // the same where there are other addresses to try
constexpr double kSecondsToConnect = 60;               // among themselves, once all have come
constexpr double kSecondsToAgain = 0.1;                // after an attempt that failed
constexpr double kSecondsToHeed = 0.1;                 // until an interruption is noticed
constexpr double kSecondsOfSignals = 1;                // from the first rank to the last, of a signal to all

using Words = std::vector<std::string>;

bool say(const Socket& socket, const Words& words) {
  const std::string text = join(words, std::string_view("\0", 1));
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(kMagic.data(), kMagic.size());
  frame.append(reinterpret_cast<const char*>(&length), sizeof(length));
  frame += text;
  return socket.send(frame.data(), static_cast<int64_t>(frame.size()), in_seconds(kSecondsToSpeak));
}

std::optional<Words> hear(const Socket& socket, Deadline deadline) {
  std::array<char, kMagic.size()> magic;
  uint32_t length = 0;
  if (!socket.receive(magic.data(), magic.size(), deadline) || magic != kMagic) return {};
  if (!socket.receive(&length, sizeof(length), deadline) || length > kLongestFrame) return {};
  std::string text(length, '\0');
  if (!socket.receive(text.data(), length, deadline)) return {};
  return split(text, '\0');
}

struct Hello {
  enum Field { kVersionField, kKind, kSize, kRank, kPort, kHost, kJob, kFields };
  std::string version, kind, size;
  int rank = -1;
  int port = 0;
  std::string host, job;
};

Words hello_words(const RendezvousOptions& options, const char* kind, int port) {
  return {kVersion, kind, str(options.size), str(options.rank), str(port), host_name(), options.job};
}

std::optional<Hello> hear_hello(const Socket& socket) {
  const std::optional<Words> words = hear(socket, in_seconds(kSecondsToSpeak));
  if (!words || words->size() != Hello::kFields) return {};
  const auto& word = *words;
  return Hello{.version = word[Hello::kVersionField],
               .kind = word[Hello::kKind],
               .size = word[Hello::kSize],
               .rank = std::atoi(word[Hello::kRank].c_str()),
               .port = std::atoi(word[Hello::kPort].c_str()),
               .host = word[Hello::kHost],
               .job = word[Hello::kJob]};
}

// A socket a lane and one for control with each rank, and some for everything else.
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

class Gathering {
 public:
  explicit Gathering(const RendezvousOptions& options)
      : options_(options), deadline_(in_seconds(options.timeout_seconds)) {
    const auto ranks = static_cast<size_t>(options.size);
    for (std::vector<Socket>& lane : peers_.data) lane.resize(ranks);
    control().resize(ranks);
    hosts().resize(ranks);
    addresses_.resize(ranks);
    ports_.resize(ranks);
    hosts()[static_cast<size_t>(options.rank)] = host_name();
  }

  Peers run() {
    listener_ = listen_on(options_.rank == 0 ? options_.port : 0);
    meet_rank_zero();
    deadline_ = in_seconds(kSecondsToConnect);
    connect_downwards();
    accept_upwards();
    return std::move(peers_);
  }

  ControlPeers run_control(Socket listener) {
    listener_ = std::move(listener);
    meet_rank_zero();
    return std::move(peers_.control);
  }

 private:
  std::vector<Socket>& control() { return peers_.control.sockets; }
  const std::vector<Socket>& control() const { return peers_.control.sockets; }
  std::vector<std::string>& hosts() { return peers_.control.hosts; }
  const std::vector<std::string>& hosts() const { return peers_.control.hosts; }

  std::string self() const { return str("rank ", options_.rank, " of ", options_.size); }
  std::string place() const { return str(join(options_.addresses, " or "), ":", options_.port); }

  void heed_interruption() const {
    if (!options_.interrupted || !options_.interrupted()) return;
    fail(Kind::kStopped, self() + ": stopped by a signal while it waited for the other ranks; nothing has begun");
  }

  // As wait_for_any.
  int wait_for_any_heeding(const std::vector<const Socket*>& sockets, Deadline deadline) const {
    while (true) {
      heed_interruption();
      const int ready = wait_for_any(sockets, std::min(deadline, in_seconds(kSecondsToHeed)));
      if (ready >= 0 || std::chrono::steady_clock::now() >= deadline) return ready;
    }
  }

  void pause(double seconds) const { wait_for_any_heeding({}, in_seconds(seconds)); }

  // Another rank has gone: it may have heeded a signal to all that has yet to come here.
  void await_signal() const {
    if (options_.interrupted) pause(kSecondsOfSignals);
  }

  void meet_rank_zero() {
    if (options_.rank == 0) {
      receive_all();
    } else {
      go_to_rank_zero();
    }
  }

  // ---- rank 0 ----

  void receive_all() {
    for (int missing = options_.size - 1; missing > 0;) {
      Socket guest = next_guest(control());
      if (!guest) refuse_all(str("waited ", options_.timeout_seconds, " s at ", place(), " for ", absent()));
      missing -= welcome(std::move(guest));
    }
    Words list = {"welcome"};
    for (size_t r = 0; r < hosts().size(); ++r) {
      list.insert(list.end(), {hosts()[r], addresses_[r], str(ports_[r])});
    }
    for (const Socket& socket : control()) {
      if (socket) say(socket, list);  // one that has left meanwhile is found missing below
    }
  }

  // Whether it is one of us.
  bool welcome(Socket guest) {
    const std::optional<Hello> hello = hear_hello(guest);
    if (!hello || hello->job != options_.job) {
      const std::string who = hello ? str("a rank of '", hello->job, "'") : "no rank of ours";
      log::warning("turned away at ", place(), ": ", guest.peer_address(), " is ", who);
      say(guest, {"refused", str("rank 0 at ", place(), " belongs to '", options_.job, "'")});
      return false;
    }
    const std::string mistake = mistake_of(*hello);
    if (!mistake.empty()) {
      say(guest, {"refused", mistake});
      refuse_all(mistake);
    }
    say(guest, {"expected"});
    const auto rank = static_cast<size_t>(hello->rank);
    addresses_[rank] = guest.peer_address();
    ports_[rank] = hello->port;
    hosts()[rank] = hello->host;
    control()[rank] = std::move(guest);
    return true;
  }

  std::string mistake_of(const Hello& hello) const {
    const std::string who = str("rank ", hello.rank, " on ", hello.host);
    if (hello.version != kVersion) return who + " runs another version of this program than rank 0";
    if (hello.size != str(options_.size)) {
      return str(who, " was started as one of ", hello.size, " ranks, rank 0 as one of ", options_.size);
    }
    const bool taken =
        hello.rank == 0 || (0 < hello.rank && hello.rank < options_.size && control()[static_cast<size_t>(hello.rank)]);
    if (taken) {
      return str("two processes say that they are rank ", hello.rank, ": on ", hosts()[static_cast<size_t>(hello.rank)],
                 " and on ", hello.host);
    }
    return hello.rank < 0 || hello.rank >= options_.size ? str(who, ": there is no such rank") : "";
  }

  std::string absent() const {
    Words ranks;
    for (int r = 1; r < options_.size; ++r) {
      if (!control()[static_cast<size_t>(r)]) ranks.push_back(str(r));
    }
    const size_t count = ranks.size();
    if (count > 8) ranks.resize(8);
    return str(count == 1 ? "rank " : "ranks ", join(ranks, ", "), count > 8 ? ", ..." : "", " of ", options_.size);
  }

  [[noreturn]] void refuse_all(const std::string& reason) const {
    for (const Socket& socket : control()) {
      if (socket) say(socket, {"refused", reason});
    }
    fail(Kind::kComm, str(self(), ": ", reason));
  }

  // The next connection, or an empty socket past the deadline. `present` are to stay, and have nothing to say.
  Socket next_guest(const std::vector<Socket>& present) const {
    std::vector<const Socket*> sockets;
    for (const Socket& socket : present) sockets.push_back(&socket);
    sockets.push_back(&listener_);
    while (true) {
      const int ready = wait_for_any_heeding(sockets, deadline_);
      if (ready < 0) return {};
      if (ready < options_.size) {
        await_signal();
        const std::string reason = str("rank ", ready, " has left while the ranks were being connected");
        if (options_.rank == 0) refuse_all(reason);
        fail(Kind::kComm, str(self(), ": ", reason));
      }
      if (Socket guest = accept_from(listener_)) return guest;
    }
  }

  // ---- the others ----

  void go_to_rank_zero() {
    Socket& rank_zero = control()[0];
    rank_zero = options_.addresses.size() == 1 ? connect_to_only_address() : find_rank_zero();
    // Rank 0 gives up first, and says what is missing.
    const std::optional<Words> answer = hear_rank_zero(rank_zero, options_.timeout_seconds);
    if (answer->size() != 1 + 3 * hosts().size()) fail(Kind::kComm, str(self(), ": no list from rank 0"));
    for (size_t r = 0; r < hosts().size(); ++r) {
      hosts()[r] = (*answer)[1 + 3 * r];
      addresses_[r] = (*answer)[2 + 3 * r];
      ports_[r] = std::atoi((*answer)[3 + 3 * r].c_str());
      // Seen from rank 0, who shares its host is on the loopback; from here it is where rank 0 is.
      if (starts_with(addresses_[r], "127.") || addresses_[r] == "::1") addresses_[r] = rank_zero.peer_address();
    }
    addresses_[0] = options_.addresses.front();
    ports_[0] = options_.port;
  }

  Socket connect_to_only_address() const {
    Socket socket = connect_patiently(options_.addresses.front(), options_.port);
    say(socket, hello_words(options_, "control", listener_ ? listener_.port() : 0));
    hear_rank_zero(socket, options_.timeout_seconds);
    return socket;
  }

  // At some of the addresses there may be another host, or another program.
  Socket find_rank_zero() const {
    std::string why;
    while (std::chrono::steady_clock::now() < deadline_) {
      for (const std::string& address : options_.addresses) {
        Socket socket = connect_to(address, options_.port, std::min(deadline_, in_seconds(kSecondsOfMany)), why);
        if (!socket) continue;
        say(socket, hello_words(options_, "control", 0));
        const std::optional<Words> answer = hear_heeding(socket, 2 * kSecondsToSpeak);
        if (answer && (*answer)[0] == "expected") return socket;
        why = answer && answer->size() > 1 ? answer->at(1) : "no answer";
      }
      pause(kSecondsToAgain);
    }
    fail(Kind::kComm, str(self(), ": rank 0 is not at ", place(), " (", why, ")"));
  }

  std::optional<Words> hear_heeding(const Socket& socket, double seconds) const {
    if (wait_for_any_heeding({&socket}, in_seconds(seconds)) < 0) return {};
    return hear(socket, in_seconds(kSecondsToSpeak));
  }

  std::optional<Words> hear_rank_zero(const Socket& socket, double seconds) const {
    std::optional<Words> answer = hear_heeding(socket, seconds + kSecondsToSpeak);
    if (!answer) {
      await_signal();
      fail(Kind::kComm, str(self(), ": rank 0 at ", place(), " left without an answer, or never gave one"));
    }
    if ((*answer)[0] == "refused") fail(Kind::kComm, str(self(), ": ", answer->at(1)));
    return answer;
  }

  Socket connect_patiently(const std::string& host, int port) const {
    std::string why;
    while (true) {
      const Deadline attempt = std::min(deadline_, in_seconds(kSecondsToAttempt));
      if (Socket socket = connect_to(host, port, attempt, why)) return socket;
      if (std::chrono::steady_clock::now() >= deadline_) break;
      pause(kSecondsToAgain);
    }
    fail(Kind::kComm, str(self(), ": cannot reach ", host, ":", port, " (", why, ")"),
         "is rank 0 running there, under the same MASTER_ADDR and MASTER_PORT, and does no firewall stand between?");
  }

  // ---- each with each ----

  static std::string data_kind(size_t lane) { return str("data", lane); }

  void connect_downwards() {
    for (size_t r = 0; r < static_cast<size_t>(options_.rank); ++r) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        Socket& socket = peers_.data[lane][r];
        socket = connect_patiently(addresses_[r], ports_[r]);
        say(socket, hello_words(options_, data_kind(lane).c_str(), 0));
      }
    }
  }

  void accept_upwards() {
    const auto all = (options_.size - 1 - options_.rank) * static_cast<int>(kLanes);
    for (int missing = all; missing > 0;) {
      Socket guest = next_guest(control());
      if (!guest)
        fail(Kind::kComm, str(self(), ": ", missing, " of ", all, " connections of the ranks above it have not come"));
      const std::optional<Hello> hello = hear_hello(guest);
      const bool ours = hello && hello->version == kVersion && hello->job == options_.job &&
                        hello->rank > options_.rank && hello->rank < options_.size;
      for (size_t lane = 0; ours && lane < kLanes; ++lane) {
        Socket& socket = peers_.data[lane][static_cast<size_t>(hello->rank)];
        if (hello->kind != data_kind(lane) || socket) continue;
        socket = std::move(guest);
        --missing;
        break;
      }
    }
  }

  const RendezvousOptions& options_;
  Deadline deadline_;
  Socket listener_;
  Peers peers_;
  std::vector<std::string> addresses_;
  std::vector<int> ports_;
};

}  // namespace

Peers meet(const RendezvousOptions& options) {
  allow_open_files(options.size);
  return Gathering(options).run();
}

ControlPeers meet_rank_zero(const RendezvousOptions& options, Socket listener) {
  allow_open_files(options.size);
  return Gathering(options).run_control(std::move(listener));
}

}  // namespace tokamak
