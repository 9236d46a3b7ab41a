// Every pair of ranks has a connection for each lane. Every collective is one message between each pair that takes
// part, all in flight at once: a header (purpose and length), then bytes. An exchange of tensors may have more. The
// groups of a run share the connections: all ranks call a lane's collectives in the same order, so messages arrive in
// that order.
#include "comm/tcp.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "base/error.h"
#include "comm/host_comm.h"
#include "comm/transfers.h"
#include "comm/watch.h"

namespace tokamak {

namespace {

constexpr int64_t kNothing = -1;                    // no message in this direction
constexpr int64_t kLongestText = int64_t{1} << 28;  // bytes of a host value
constexpr double kSecondsToBegin = 60;              // for all to take part in the first collective
constexpr int kMillisecondsToHeed = 100;            // within which that wait notices an interruption

enum class Purpose : int64_t { kGather = 1, kExchange, kBroadcast, kBarrier, kTensors };

struct Header {
  Purpose purpose;
  int64_t bytes;
};
constexpr int64_t kHeaderBytes = sizeof(Header);

// One message to a rank and one from it.
struct MessagePair {
  int peer = 0;
  const std::byte* out = nullptr;
  int64_t out_bytes = kNothing;
  std::byte* in = nullptr;
  int64_t in_bytes = kNothing;
};

class Connections {
 public:
  Connections(LaneSockets data, std::vector<std::string> hosts) : data_(std::move(data)), hosts_(std::move(hosts)) {}

  int ranks() const { return static_cast<int>(hosts_.size()); }

  // Sets the deadline of transfers until the next call, and what can end them earlier.
  void limit(Deadline deadline, std::function<bool()> interrupted) {
    deadline_ = deadline;
    interrupted_ = std::move(interrupted);
  }

  // Returns when all messages are sent and received.
  void transfer(Lane lane, Purpose purpose, const std::vector<MessagePair>& messages) {
    std::vector<Progress> all;
    for (const MessagePair& pair : messages) {
      all.emplace_back(pair, purpose, data_[static_cast<size_t>(lane)][pair.peer]);
    }
    while (true) {
      std::vector<pollfd> polled;
      for (Progress& one : all) {
        send(one);
        receive(one);
        if (one.unsent() == 0 && one.awaited() == 0) continue;
        const int events = (one.unsent() > 0 ? POLLOUT : 0) | (one.awaited() > 0 ? POLLIN : 0);
        polled.push_back({.fd = one.socket.fd(), .events = static_cast<int16_t>(events), .revents = 0});
      }
      if (polled.empty()) return;
      const bool limited = deadline_ != kNever;
      if (limited) heed_limit(all);
      const int wait = limited ? kMillisecondsToHeed : -1;
      if (::poll(polled.data(), polled.size(), wait) < 0 && errno != EINTR) fail_errno(Kind::kComm, "poll");
    }
  }

  // Checks a length that a peer has sent.
  int64_t checked_length(int rank, int64_t length) const {
    if (0 <= length && length <= kLongestText) return length;
    fail(Kind::kComm,
         str(name(rank), " announces a message of ", length, " bytes; at most ", kLongestText, " are taken"));
  }

 private:
  struct Progress {
    Progress(const MessagePair& pair, Purpose purpose, const Socket& its_socket)
        : messages(pair), socket(its_socket), out_header{purpose, pair.out_bytes} {}

    int64_t unsent() const { return messages.out_bytes == kNothing ? 0 : kHeaderBytes + messages.out_bytes - sent; }
    int64_t awaited() const { return messages.in_bytes == kNothing ? 0 : kHeaderBytes + messages.in_bytes - received; }

    MessagePair messages;
    const Socket& socket;
    Header out_header;
    Header in_header = {};
    int64_t sent = 0;  // header and bytes together, as in `received`
    int64_t received = 0;
  };

  // Sends as much as possible without waiting.
  void send(Progress& one) const {
    while (one.unsent() > 0) {
      const bool in_header = one.sent < kHeaderBytes;
      const auto* from = in_header ? reinterpret_cast<const std::byte*>(&one.out_header) + one.sent
                                   : one.messages.out + (one.sent - kHeaderBytes);
      const int64_t bytes = in_header ? kHeaderBytes - one.sent : one.unsent();
      const int64_t sent = one.socket.send_some(from, bytes, in_header && one.messages.out_bytes > 0);
      if (sent < 0) lost(one);
      if (sent == 0) return;
      one.sent += sent;
    }
  }

  void receive(Progress& one) const {
    while (one.awaited() > 0) {
      const bool in_header = one.received < kHeaderBytes;
      auto* to = in_header ? reinterpret_cast<std::byte*>(&one.in_header) + one.received
                           : one.messages.in + (one.received - kHeaderBytes);
      const int64_t received = one.socket.receive_some(to, in_header ? kHeaderBytes - one.received : one.awaited());
      if (received < 0) lost(one);
      if (received == 0) return;
      one.received += received;
      if (in_header && one.received == kHeaderBytes) check(one);
    }
  }

  void check(const Progress& one) const {
    if (one.in_header.purpose == one.out_header.purpose && one.in_header.bytes == one.messages.in_bytes) return;
    fail(Kind::kComm,
         str(name(one.messages.peer), " sends a message of kind ", static_cast<int64_t>(one.in_header.purpose), ", ",
             one.in_header.bytes, " bytes; expected were kind ", static_cast<int64_t>(one.out_header.purpose), ", ",
             one.messages.in_bytes, " bytes"));
  }

  void heed_limit(const std::vector<Progress>& all) const {
    if (interrupted_ && interrupted_()) {
      fail(Kind::kStopped, "stopped by a signal while it waited for the other ranks; nothing has begun");
    }
    if (std::chrono::steady_clock::now() < deadline_) return;
    std::vector<std::string> silent;
    for (const Progress& one : all) {
      if (one.unsent() > 0 || one.awaited() > 0) silent.push_back(name(one.messages.peer));
    }
    fail(Kind::kComm,
         str("after all ranks had met, nothing was heard for ", kSecondsToBegin, " s of ", join(silent, ", ")));
  }

  // The watch reports why the other end is gone; normally it ends this process while we wait here.
  [[noreturn]] void lost(const Progress& one) const {
    const std::string reason = errno == 0 ? "" : str(": ", std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::seconds(10));
    fail(Kind::kComm, str("the connection to ", name(one.messages.peer), " is lost", reason));
  }

  std::string name(int rank) const { return Watch::rank_name(hosts_, rank); }

  LaneSockets data_;
  std::vector<std::string> hosts_;
  Deadline deadline_ = kNever;
  std::function<bool()> interrupted_;
};

class TcpComm : public HostComm {
 public:
  // `members` are the ranks of the run that form the group; this is the rank-th.
  TcpComm(Connections& connections, std::vector<int> members, int rank)
      : connections_(connections), members_(std::move(members)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  void do_barrier() override {
    transfer_with_all(Lane::kHost, Purpose::kBarrier, [](int, MessagePair& t) { t.out_bytes = t.in_bytes = 0; });
  }

  void do_broadcast(std::string& bytes, int root) override {
    int64_t length = std::ssize(bytes);
    broadcast_bytes(reinterpret_cast<std::byte*>(&length), sizeof(length), root);
    if (rank_ != root) bytes.resize(checked_length(root, length));
    broadcast_bytes(reinterpret_cast<std::byte*>(bytes.data()), length, root);
  }

  std::vector<std::string> do_gather_all(const std::string& bytes) override {
    const std::vector<int64_t> lengths = gather_numbers(std::ssize(bytes));
    std::vector<std::string> by_rank;
    for (int r = 0; r < size(); ++r) {
      const int64_t length = r == rank_ ? 0 : checked_length(r, lengths[r]);
      by_rank.emplace_back(length, '\0');
    }
    by_rank[rank_] = bytes;
    transfer_with_all(Lane::kHost, Purpose::kGather, [&](int r, MessagePair& t) {
      std::string& theirs = by_rank[r];
      t.out = reinterpret_cast<const std::byte*>(bytes.data());
      t.out_bytes = std::ssize(bytes);
      t.in = reinterpret_cast<std::byte*>(theirs.data());
      t.in_bytes = std::ssize(theirs);
    });
    return by_rank;
  }

  int64_t do_max(int64_t value) override {
    const std::vector<int64_t> values = gather_numbers(value);
    return *std::max_element(values.begin(), values.end());
  }

  std::unique_ptr<Comm> do_split(int color) override {
    const std::vector<int64_t> colors = gather_numbers(color);
    std::vector<int> members;
    int rank = 0;
    for (int r = 0; r < size(); ++r) {
      if (colors[r] != color) continue;
      if (r == rank_) rank = static_cast<int>(members.size());
      members.push_back(members_[r]);
    }
    return std::make_unique<TcpComm>(connections_, std::move(members), rank);
  }

 private:
  int64_t checked_length(int rank, int64_t length) const { return connections_.checked_length(members_[rank], length); }

  void gather_bytes(Lane lane, const std::byte* own, std::byte* all, int64_t bytes) override {
    if (own != all + rank_ * bytes) std::copy(own, own + bytes, all + rank_ * bytes);
    transfer_with_all(lane, Purpose::kGather, [&](int r, MessagePair& t) {
      t.out = own;
      t.in = all + r * bytes;
      t.out_bytes = t.in_bytes = bytes;
    });
  }

  void exchange_bytes(Lane lane, const std::byte* outgoing, std::byte* incoming, int64_t bytes) override {
    std::copy(outgoing + rank_ * bytes, outgoing + (rank_ + 1) * bytes, incoming + rank_ * bytes);
    transfer_with_all(lane, Purpose::kExchange, [&](int r, MessagePair& t) {
      t.out = outgoing + r * bytes;
      t.in = incoming + r * bytes;
      t.out_bytes = t.in_bytes = bytes;
    });
  }

  // Round i moves the i-th tensors of all pairs. A rank leaves it when its own are there, and waits for nothing else:
  // between two ranks, tensors have the same rounds on both sides.
  void exchange_tensors(Lane lane, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    std::vector<std::vector<Tensor>> to, from;  // by rank
    size_t rounds = 0;
    for (int r = 0; r < size(); ++r) {
      to.push_back(tensors_with(r, sends));
      from.push_back(tensors_with(r, receives));
      rounds = std::max({rounds, to[r].size(), from[r].size()});
    }
    for (size_t i = 0; i < rounds; ++i) {
      transfer_with_all(lane, Purpose::kTensors, [&](int r, MessagePair& t) {
        if (i < to[r].size()) {
          t.out = static_cast<const std::byte*>(to[r][i].data());
          t.out_bytes = to[r][i].bytes();
        }
        if (i < from[r].size()) {
          t.in = static_cast<std::byte*>(from[r][i].data());
          t.in_bytes = from[r][i].bytes();
        }
      });
    }
  }

  void broadcast_bytes(std::byte* data, int64_t bytes, int root) {
    transfer_with_all(Lane::kHost, Purpose::kBroadcast, [&](int r, MessagePair& t) {
      if (rank_ == root) {
        t.out = data;
        t.out_bytes = bytes;
      } else if (r == root) {
        t.in = data;
        t.in_bytes = bytes;
      }
    });
  }

  std::vector<int64_t> gather_numbers(int64_t value) {
    std::vector<int64_t> all(members_.size());
    gather_bytes(Lane::kHost, reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(all.data()),
                 sizeof(value));
    return all;
  }

  // fill(r, messages) sets the messages to and from rank r of the group.
  template <class Fill>
  void transfer_with_all(Lane lane, Purpose purpose, const Fill& fill) {
    std::vector<MessagePair> messages;
    for (int step = 1; step < size(); ++step) {  // each rank begins with its successor
      const int r = (rank_ + step) % size();
      MessagePair t = {.peer = members_[r]};
      fill(r, t);
      messages.push_back(t);
    }
    connections_.transfer(lane, purpose, messages);
  }

  Connections& connections_;
  const std::vector<int> members_;
  const int rank_;
};

// The whole run, which owns the connections.
class TcpWorld : private Connections, public TcpComm {
 public:
  TcpWorld(int rank, LaneSockets data, std::vector<std::string> hosts)
      : Connections(std::move(data), std::move(hosts)), TcpComm(*this, all_of(ranks()), rank) {}

  void begin(const std::function<bool()>& interrupted) {
    limit(in_seconds(kSecondsToBegin), interrupted);
    barrier();  // all ranks have come
    limit(kNever, {});
  }

 private:
  static std::vector<int> all_of(int size) {
    std::vector<int> ranks(size);
    for (int r = 0; r < size; ++r) ranks[r] = r;
    return ranks;
  }
};

}  // namespace

std::unique_ptr<Comm> make_tcp_comm(int rank, LaneSockets data, std::vector<std::string> hosts,
                                    const std::function<bool()>& interrupted) {
  auto world = std::make_unique<TcpWorld>(rank, std::move(data), std::move(hosts));
  world->begin(interrupted);
  return world;
}

}  // namespace tokamak
