// One mechanism serves all collectives: every rank posts an address, waits until all have, reads the data at the
// others' addresses, and returns when all have read.
#include "comm/thread_comm.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "comm/host_comm.h"
#include "comm/transfers.h"

namespace tokamak {

namespace {

// The caller's view of a collective, which must be the same on all ranks of a group. `bytes` is 0 if they may differ.
struct Call {
  const char* name;
  int64_t bytes = 0;

  bool operator==(const Call& other) const { return std::strcmp(name, other.name) == 0 && bytes == other.bytes; }
  std::string text() const { return str(name, "(", bytes, " bytes)"); }
};

// Ranks that call collectives together. The world's mutex guards it; the two waits of an exchange guard `posts`.
struct Group {
  std::vector<int> members;  // ranks of the world
  std::vector<const void*> posts;
  std::vector<Call> calls;
  int arrived = 0;
  int64_t rounds = 0;  // times that all have arrived
};
using Lanes = std::array<Group*, kLanes>;

class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks) : has_left_(ranks, false) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    all_ranks_ = add_lanes(all);
  }

  const Lanes& all_ranks() const { return all_ranks_; }

  Lanes add_lanes(const std::vector<int>& members) {
    Lanes lanes;
    for (Group*& lane : lanes) lane = &add_group(members);
    return lanes;
  }

  Group& add_group(std::vector<int> members) {
    const std::lock_guard lock(mutex_);
    const size_t size = members.size();
    groups_.push_back(std::make_unique<Group>(
        Group{std::move(members), std::vector<const void*>(size), std::vector<Call>(size, Call{""})}));
    return *groups_.back();
  }

  // Calls read(posts) on every rank when all have posted; returns when all have read.
  template <class Read>
  void exchange(Group& group, int rank, const Call& call, const void* post, const Read& read) {
    group.posts[rank] = post;
    wait_for_all(group, rank, call);
    read(group.posts);
    wait_for_all(group, rank, call);
  }

  void wait_for_all(Group& group, int rank, const Call& call) {
    std::unique_lock lock(mutex_);
    group.calls[rank] = call;
    const int64_t round = group.rounds;
    if (++group.arrived == static_cast<int>(group.members.size())) {
      end_if_different(group);
      group.arrived = 0;
      ++group.rounds;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return group.rounds != round || departed_member(group) >= 0; });
    if (group.rounds != round) return;
    const int missing = departed_member(group);
    fail(Kind::kComm, str("rank ", group.members[rank], " waits in ", call.text(),
                          over() ? ", and the run is over" : str(", and rank ", missing, " has returned")));
  }

  // Ends a thread: run_on_threads throws the first error.
  void leave(int rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error != nullptr) end(std::move(error));
    has_left_[rank] = true;
    changed_.notify_all();
  }

  void rethrow() const {
    if (first_error_ != nullptr) std::rethrow_exception(first_error_);
  }

 private:
  // Called by the last rank to arrive: the others still wait, and find that the run is over.
  void end_if_different(const Group& group) {
    for (size_t i = 1; i < group.calls.size(); ++i) {
      if (group.calls[i] == group.calls[0]) continue;
      const Error error(Kind::kBug, str("rank ", group.members[0], " calls ", group.calls[0].text(), ", rank ",
                                        group.members[i], " calls ", group.calls[i].text()));
      end(std::make_exception_ptr(error));
      throw error;
    }
  }

  void end(std::exception_ptr error) {
    if (first_error_ == nullptr) first_error_ = std::move(error);
    changed_.notify_all();
  }

  bool over() const { return first_error_ != nullptr; }

  int departed_member(const Group& group) const {  // a member that will never arrive, or -1
    const auto found =
        std::find_if(group.members.begin(), group.members.end(), [&](int member) { return has_left_[member]; });
    return found == group.members.end() ? -1 : *found;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Group>> groups_;
  Lanes all_ranks_ = {};
  std::vector<bool> has_left_;
  std::exception_ptr first_error_;
};

class ThreadComm : public HostComm {
 public:
  ThreadComm(ThreadWorld& world, const Lanes& lanes, int rank) : world_(world), lanes_(lanes), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_.members.size()); }

  void do_barrier() override { world_.wait_for_all(group_, rank_, {"barrier"}); }

  void do_broadcast(std::string& bytes, int root) override {
    world_.exchange(group_, rank_, {"broadcast"}, &bytes, [&](const auto& posts) {
      if (rank_ != root) bytes = at<std::string>(posts, root);
    });
  }

  std::vector<std::string> do_gather_all(const std::string& bytes) override {
    return gather<std::string>("gather_all", bytes);
  }

  int64_t do_max(int64_t value) override {
    const std::vector<int64_t> all = gather<int64_t>("max", value);
    return *std::max_element(all.begin(), all.end());
  }

  std::unique_ptr<Comm> do_split(int color) override {
    const std::vector<int> colors = gather<int>("split", color);
    std::vector<int> part;  // ranks of this group
    for (int r = 0; r < size(); ++r) {
      if (colors[r] == color) part.push_back(r);
    }
    Lanes made = {};
    if (part.front() == rank_) {
      std::vector<int> members;
      for (const int r : part) members.push_back(group_.members[r]);
      made = world_.add_lanes(members);
    }
    const std::vector<Lanes> lanes = gather<Lanes>("split", made);
    const auto place = std::find(part.begin(), part.end(), rank_) - part.begin();
    return std::make_unique<ThreadComm>(world_, lanes[part.front()], static_cast<int>(place));
  }

 private:
  template <class T>
  static const T& at(const std::vector<const void*>& posts, int rank) {
    return *static_cast<const T*>(posts[rank]);
  }

  template <class T>
  std::vector<T> gather(const char* name, const T& own) {
    std::vector<T> all;
    world_.exchange(group_, rank_, {name}, &own, [&](const auto& posts) {
      for (int r = 0; r < size(); ++r) all.push_back(at<T>(posts, r));
    });
    return all;
  }

  void gather_bytes(Lane lane, const std::byte* own, std::byte* all, int64_t bytes) override {
    world_.exchange(*lanes_[static_cast<size_t>(lane)], rank_, {"gather", bytes}, own, [&](const auto& posts) {
      for (int r = 0; r < size(); ++r) copy(&at<std::byte>(posts, r), all + r * bytes, bytes);
    });
  }

  void exchange_bytes(Lane lane, const std::byte* outgoing, std::byte* incoming, int64_t bytes) override {
    world_.exchange(*lanes_[static_cast<size_t>(lane)], rank_, {"exchange", bytes}, outgoing, [&](const auto& posts) {
      for (int r = 0; r < size(); ++r) copy(&at<std::byte>(posts, r) + rank_ * bytes, incoming + r * bytes, bytes);
    });
  }

  void exchange_tensors(Lane lane, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    int stranger = rank_;  // sends something else than this rank receives
    world_.exchange(*lanes_[static_cast<size_t>(lane)], rank_, {"exchange of tensors"}, &sends, [&](const auto& posts) {
      for (int r = 0; r < size(); ++r) {
        const std::vector<Tensor> sent = tensors_with(rank_, at<std::span<const Transfer>>(posts, r));
        const std::vector<Tensor> received = tensors_with(r, receives);
        if (meet(sent, received)) {
          copy_each(sent, received);
        } else {
          stranger = r;  // the others still read: end later
        }
      }
    });
    TOKAMAK_CHECK(stranger == rank_, "rank ", rank_, " receives something else than rank ", stranger, " sends");
  }

  static void copy(const std::byte* from, std::byte* to, int64_t bytes) {
    if (from != to && bytes > 0) std::memcpy(to, from, bytes);
  }

  ThreadWorld& world_;
  const Lanes lanes_;
  Group& group_ = *lanes_[static_cast<size_t>(Lane::kHost)];
  const int rank_;
};

}  // namespace

void run_on_threads(int ranks, const std::function<void(Comm&)>& body) {
  ThreadWorld world(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&world, &body, rank] {
      std::exception_ptr error;
      try {
        ThreadComm comm(world, world.all_ranks(), rank);
        body(comm);
      } catch (...) {
        error = std::current_exception();
      }
      world.leave(rank, std::move(error));
    });
  }
  for (std::thread& thread : threads) thread.join();
  world.rethrow();
}

}  // namespace tokamak
