// Comm over MPI, for host memory. Data moves as bytes, because MPI has no bf16 and specifies no order of summation:
// host_comm.cc sums. Every wait sleeps, because MPI's own blocking calls spin and occupy shared cores.
#include "comm/mpi.h"

// The C++ bindings were removed in MPI 3; their header does not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "comm/host_comm.h"

namespace tokamak {

namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(Kind::kComm, str(what, ": ", std::string(text, length)));
}

// Bytes of a message between two ranks, since MPI counts in int. Longer tensors take several, which arrive in order.
constexpr int64_t kLongestMpiMessage = int64_t{8} << 20;

int to_int(int64_t count) {
  TOKAMAK_CHECK(0 <= count && count <= INT32_MAX, count);
  return static_cast<int>(count);
}

class MpiComm : public HostComm {
 public:
  explicit MpiComm(MPI_Comm comm) : lanes_{comm, MPI_COMM_NULL, MPI_COMM_NULL} {
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    check(MPI_Type_contiguous(kSliceAlignment, MPI_BYTE, &block_), "MPI_Type_contiguous");
    check(MPI_Type_commit(&block_), "MPI_Type_commit");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    for (const Lane own : {Lane::kGather, Lane::kReduce}) {  // duplicates inherit the handler
      check(MPI_Comm_dup(comm_, &lane(own)), "MPI_Comm_dup");
    }
  }
  ~MpiComm() override {
    MPI_Type_free(&block_);
    MPI_Comm_free(&lane(Lane::kGather));
    MPI_Comm_free(&lane(Lane::kReduce));
    if (comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void do_barrier() override {
    await("MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }

  void do_broadcast(std::string& bytes, int root) override {
    int64_t length = std::ssize(bytes);
    await("MPI_Ibcast", [&](MPI_Request* r) { return MPI_Ibcast(&length, 1, MPI_INT64_T, root, comm_, r); });
    bytes.resize(length);
    await("MPI_Ibcast",
          [&](MPI_Request* r) { return MPI_Ibcast(bytes.data(), to_int(length), MPI_BYTE, root, comm_, r); });
  }

  std::vector<std::string> do_gather_all(const std::string& bytes) override {
    const int length = to_int(std::ssize(bytes));
    std::vector<int> lengths(size_), offsets(size_);
    await("MPI_Iallgather", [&](MPI_Request* request) {
      return MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_, request);
    });
    int64_t total = 0;
    for (size_t r = 0; r < lengths.size(); ++r) {
      offsets[r] = to_int(total);
      total += lengths[r];
    }
    std::string all(total, '\0');
    await("MPI_Iallgatherv", [&](MPI_Request* request) {
      return MPI_Iallgatherv(bytes.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(), MPI_BYTE,
                             comm_, request);
    });
    std::vector<std::string> by_rank;
    for (size_t r = 0; r < lengths.size(); ++r) {
      by_rank.push_back(all.substr(static_cast<size_t>(offsets[r]), static_cast<size_t>(lengths[r])));
    }
    return by_rank;
  }

  int64_t do_max(int64_t value) override {
    int64_t result = 0;
    await("MPI_Iallreduce", [&](MPI_Request* request) {
      return MPI_Iallreduce(&value, &result, 1, MPI_INT64_T, MPI_MAX, comm_, request);
    });
    return result;
  }

  std::unique_ptr<Comm> do_split(int color) override {
    MPI_Comm part;
    check(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
    return std::make_unique<MpiComm>(part);
  }

 private:
  void gather_bytes(Lane lane_of_it, const std::byte* own, std::byte* all, int64_t bytes) override {
    const void* from = own == all + rank_ * bytes ? MPI_IN_PLACE : own;
    const auto [type, count] = counted(bytes);
    await("MPI_Iallgather", [&](MPI_Request* request) {
      return MPI_Iallgather(from, count, type, all, count, type, lane(lane_of_it), request);
    });
  }

  void exchange_bytes(Lane lane_of_it, const std::byte* outgoing, std::byte* incoming, int64_t bytes) override {
    const auto [type, count] = counted(bytes);
    await("MPI_Ialltoall", [&](MPI_Request* request) {
      return MPI_Ialltoall(outgoing, count, type, incoming, count, type, lane(lane_of_it), request);
    });
  }

  void exchange_tensors(Lane lane_of_it, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    struct Incoming {
      int peer, bytes;
      MPI_Request request;
    };
    std::vector<Incoming> incoming;
    std::vector<MPI_Request> outgoing;
    for_each_message(receives, [&](int peer, std::byte* data, int bytes) {
      incoming.push_back({peer, bytes, MPI_REQUEST_NULL});
      check(MPI_Irecv(data, bytes, MPI_BYTE, peer, 0, lane(lane_of_it), &incoming.back().request), "MPI_Irecv");
    });
    for_each_message(sends, [&](int peer, const std::byte* data, int bytes) {
      check(MPI_Isend(data, bytes, MPI_BYTE, peer, 0, lane(lane_of_it), &outgoing.emplace_back()), "MPI_Isend");
    });
    for (Incoming& one : incoming) {
      const MPI_Status status = wait_for(one.request);
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      if (bytes == one.bytes) continue;
      fail(Kind::kComm, str("rank ", one.peer, " sends ", bytes, " bytes; expected were ", one.bytes));
    }
    for (MPI_Request& request : outgoing) wait_for(request);
  }

  // Calls move(peer, data, bytes) for each message of the transfers.
  template <class Move>
  static void for_each_message(std::span<const Transfer> transfers, const Move& move) {
    for (const auto& [peer, tensor] : transfers) {
      for (int64_t at = 0; at < tensor.bytes(); at += kLongestMpiMessage) {
        move(peer, static_cast<std::byte*>(tensor.data()) + at,
             to_int(std::min(kLongestMpiMessage, tensor.bytes() - at)));
      }
    }
  }

  // Starts a collective and waits until it is done. `name` is that of the call, for errors.
  template <class Start>
  static void await(const char* name, const Start& start) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(start(&request), name);
    wait_for(request);
  }

  // Each sleep lasts a fiftieth of the wait so far, so that it ends at most 2 % late.
  static MPI_Status wait_for(MPI_Request& request) {
    MPI_Status status;
    const Stopwatch waited;
    for (;;) {
      int done = 0;
      check(MPI_Test(&request, &done, &status), "MPI_Test");
      if (done != 0) return status;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(waited.seconds() / 50, 20e-6, 2e-3)));
    }
  }

  MPI_Comm& lane(Lane which) { return lanes_[static_cast<size_t>(which)]; }

  // MPI counts in int, so large transfers go in aligned blocks.
  std::pair<MPI_Datatype, int> counted(int64_t bytes) const {
    if (bytes % kSliceAlignment == 0) return {block_, to_int(bytes / kSliceAlignment)};
    return {MPI_BYTE, to_int(bytes)};
  }

  std::array<MPI_Comm, kLanes> lanes_;  // each has its own order of messages
  MPI_Comm& comm_ = lane(Lane::kHost);
  MPI_Datatype block_ = MPI_DATATYPE_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

MpiWorld start_mpi() {
  int provided = 0;
  // The thread of each lane calls MPI concurrently.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE) {
    fail(Kind::kComm, "this MPI lets only one thread communicate (no MPI_THREAD_MULTIPLE)",
         "an MPI that was built with threads, as Open MPI is from version 3 on");
  }
  MpiWorld world;
  world.comm = std::make_unique<MpiComm>(MPI_COMM_WORLD);
  MPI_Comm node;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  MPI_Comm_rank(node, &world.local_rank);
  MPI_Comm_size(node, &world.local_size);
  MPI_Comm_free(&node);
  return world;
}

void end_mpi() { MPI_Finalize(); }

void abort_mpi(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tokamak
