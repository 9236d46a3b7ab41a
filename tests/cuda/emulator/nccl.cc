// NCCL's calls on the emulator. The ranks of a communicator map a file whose name is its id. There they take turns to
// show each other pieces of their memory, or leave messages in mailboxes. Breaking NCCL's rules (a buffer freed while
// it is registered, a message that no rank receives) ends the process.
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cuda/nccl/library.h"
#include "mailboxes.h"
#include "nccl_record.h"
#include "streams.h"

namespace {

constexpr int kMostRanks = 16;
constexpr size_t kPieceBytes = 1 << 20;

struct Meeting {  // what the ranks share
  std::atomic<bool> ready;
  pthread_barrier_t barrier;
  alignas(64) std::byte pieces[kMostRanks][kPieceBytes];
  emulator::Mailboxes<kMostRanks> mail;
};

[[noreturn]] void broken(const char* rule) {
  std::fprintf(stderr, "emulator: NCCL: %s\n", rule);
  std::abort();
}

}  // namespace

struct ncclComm {
  Meeting* meeting = nullptr;
  int ranks = 1, rank = 0;
  ncclConfig_t config;
  std::string name;
  ncclComm* parent = nullptr;
  int parts = 0;            // communicators split from it that still live
  bool* aborted = nullptr;  // shared by communicators that share resources
  size_t number = 0;
  int registered = 0;
  std::atomic<int> collectives = 0;
};

namespace {

emulator::NcclRecord& record() {
  static emulator::NcclRecord instance;
  return instance;
}

struct Message {
  std::byte* memory;
  size_t bytes;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
};
struct Group {
  int depth = 0;
  std::vector<Message> sent, expected;
};
Group& group() {
  static Group instance;
  return instance;
}

struct Registered {
  std::byte* memory;
  size_t bytes;
  ncclComm_t comm;
  bool window;
};
std::vector<Registered*>& registered() {
  static std::vector<Registered*> all;
  return all;
}
ncclResult_t add_registration(ncclComm_t comm, void* memory, size_t bytes, bool window, void** handle) {
  registered().push_back(new Registered{static_cast<std::byte*>(memory), bytes, comm, window});
  record().registrations.push_back({comm->name, window});
  record().registered = registered().size();
  ++comm->registered;
  *handle = registered().back();
  return ncclSuccess;
}
bool in_window(ncclComm_t comm, const void* memory, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(memory);
  return std::any_of(registered().begin(), registered().end(), [&](const Registered* r) {
    return r->comm == comm && r->window && r->memory <= at && at + bytes <= r->memory + r->bytes;
  });
}

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      return 8;
  }
  broken("an unknown type");
}

// Whether the communicator's name begins with the value of this environment variable.
bool concerns(const char* variable, ncclComm_t comm) {
  const char* const beginning = std::getenv(variable);
  return beginning != nullptr && comm->name.rfind(beginning, 0) == 0;
}

ncclResult_t enqueue(cudaStream_t stream, ncclComm_t comm, const emulator::NcclCall& call, emulator::Work work) {
  record().calls.push_back(call);
  record().calls.back().communicator = comm->name;
  record().calls.back().stream = stream;
  if (*comm->aborted) broken("a collective of a communicator that was aborted, or shares with one that was");
  if (concerns("TOKAMAK_EMULATOR_NCCL_REFUSES", comm)) return ncclInternalError;
  emulator::enqueue(stream, std::move(work));
  return ncclSuccess;
}

// Every rank shows `bytes` of its own memory to all. see(rank, piece, at, bytes) is called for each piece of each rank.
using See = std::function<void(int, const std::byte*, size_t, size_t)>;
void show(ncclComm_t comm, const void* own, size_t bytes, const See& see) {
  const emulator::Access access;
  ++comm->collectives;
  while (concerns("TOKAMAK_EMULATOR_NCCL_HANGS", comm)) pause();
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t piece = std::min(kPieceBytes, bytes - at);
    std::memcpy(comm->meeting->pieces[comm->rank], static_cast<const std::byte*>(own) + at, piece);
    pthread_barrier_wait(&comm->meeting->barrier);
    for (int r = 0; r < comm->ranks; ++r) see(r, comm->meeting->pieces[r], at, piece);
    pthread_barrier_wait(&comm->meeting->barrier);
  }
}

// Sums from the rank after `first` on, as a ring does: an order that the caller must not rely on.
template <class T>
void sum_of_all(ncclComm_t comm, const void* own, T* to, size_t count, int first, bool wanted) {
  std::vector<std::vector<T>> contributions(static_cast<size_t>(comm->ranks), std::vector<T>(count));
  show(comm, own, count * sizeof(T), [&](int rank, const std::byte* piece, size_t at, size_t bytes) {
    std::memcpy(reinterpret_cast<std::byte*>(contributions[static_cast<size_t>(rank)].data()) + at, piece, bytes);
  });
  if (!wanted) return;
  const emulator::Access access;
  for (size_t i = 0; i < count; ++i) {
    T total = 0;
    for (int r = 1; r <= comm->ranks; ++r) total += contributions[static_cast<size_t>((first + r) % comm->ranks)][i];
    to[i] = total;
  }
}

int failing_rank() {
  const char* rank = std::getenv("TOKAMAK_EMULATOR_NCCL_FAILS");
  return rank == nullptr ? -1 : std::atoi(rank);
}

}  // namespace

namespace emulator {
const NcclRecord& nccl_record() { return record(); }
}  // namespace emulator

namespace tokamak {
bool open_nccl(std::string*) { return true; }
std::string nccl_version() { return "emulated"; }
}  // namespace tokamak

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclRemoteError ? "remote error" : "an error"; }
const char* ncclGetLastError(ncclComm_t) { return "the emulator was asked to fail"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  char path[] = "/dev/shm/tokamak-emulated-nccl-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, sizeof(Meeting)) != 0) return ncclSystemError;
  close(file);
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, path, sizeof(path));
  return ncclSuccess;
}

namespace {
ncclResult_t join_meeting(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, const ncclConfig_t& config,
                          ncclComm_t parent) {
  if (ranks > kMostRanks) return ncclInvalidArgument;
  if (ranks > 1) emulator::expect_other_ranks();
  const int file = open(id.internal, O_RDWR);
  void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto* meeting = static_cast<Meeting*>(memory);
  if (rank == 0) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &attributes, static_cast<unsigned>(ranks));
    meeting->ready = true;
  }
  while (!meeting->ready) usleep(1000);
  pthread_barrier_wait(&meeting->barrier);
  if (rank == 0) unlink(id.internal);
  const std::string name = config.commName == nullptr ? "" : config.commName;
  const bool shares = parent != nullptr && parent->config.splitShare == 1;
  *comm = new ncclComm{.meeting = meeting,
                       .ranks = ranks,
                       .rank = rank,
                       .config = config,
                       .name = name,
                       .parent = parent,
                       .aborted = shares ? parent->aborted : new bool(false),
                       .number = record().communicators.size()};
  record().communicators.push_back({.name = name,
                                    .ranks = ranks,
                                    .max_ctas = config.maxCTAs,
                                    .split_share = config.splitShare,
                                    .cta_policy = config.CTAPolicy,
                                    .parent = parent == nullptr ? "" : parent->name,
                                    .shares = shares});
  return ncclSuccess;
}
}  // namespace

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return join_meeting(comm, ranks, id, rank, *config, nullptr);
}

// As NCCL 2.28.9 does it, a part takes nothing of the parent's configuration if it has one of its own.
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  struct Member {
    int color, key;
    ncclUniqueId id;
  };
  if (color < 0) return ncclInvalidArgument;
  Member own{color, key, {}};
  if (const ncclResult_t result = ncclGetUniqueId(&own.id); result != ncclSuccess) return result;
  std::vector<Member> members;
  show(parent, &own, sizeof(own), [&](int, const std::byte* member, size_t, size_t) {
    std::memcpy(&members.emplace_back(), member, sizeof(Member));
  });
  std::erase_if(members, [&](const Member& m) { return m.color != color; });
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  const auto is_own = [&](const Member& m) { return std::memcmp(&m.id, &own.id, sizeof(own.id)) == 0; };
  const auto rank = static_cast<int>(std::find_if(members.begin(), members.end(), is_own) - members.begin());
  if (rank != 0) unlink(own.id.internal);
  ++parent->parts;
  return join_meeting(part, static_cast<int>(members.size()), members.front().id, rank, *config, parent);
}

namespace {
void end(ncclComm_t comm) {
  if (comm->parts != 0) broken("a communicator gone before those that were split from it");
  if (comm->parent != nullptr) --comm->parent->parts;
  record().communicators[comm->number].lives = false;
  munmap(comm->meeting, sizeof(Meeting));
  delete comm;
}
}  // namespace
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->registered != 0) broken("a communicator destroyed while buffers are registered");
  if (comm->meeting->mail.has_mail(comm->rank)) broken("a message that no rank receives");
  end(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  *comm->aborted = true;
  record().communicators[comm->number].aborted = true;
  end(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  constexpr int kAfterCollectives = 20;
  *error = comm->rank == failing_rank() && comm->collectives > kAfterCollectives ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  if (std::getenv("TOKAMAK_EMULATOR_NCCL_NO_MEMORY") != nullptr) return ncclSystemError;
  *memory = emulator::allocate(bytes);
  if (*memory != nullptr) ++record().allocated;
  return *memory == nullptr ? ncclUnhandledCudaError : ncclSuccess;
}
ncclResult_t ncclMemFree(void* memory) {
  for (const Registered* r : registered()) {
    if (r->memory == memory) broken("a buffer freed while it is registered");
  }
  emulator::run_all_streams();
  emulator::release(memory);
  --record().allocated;
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, size_t bytes, void** handle) {
  return add_registration(comm, memory, bytes, false, handle);
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  auto* mine = static_cast<Registered*>(handle);
  if (mine->comm != comm) broken("a buffer deregistered from another communicator");
  std::erase(registered(), mine);
  record().registered = registered().size();
  --comm->registered;
  delete mine;
  return ncclSuccess;
}

namespace tokamak {
ncclResult_t register_window(ncclComm_t comm, void* memory, size_t bytes, void** window) {
  if (std::getenv("TOKAMAK_EMULATOR_NCCL_NO_WINDOWS") != nullptr) return ncclSuccess;
  pthread_barrier_wait(&comm->meeting->barrier);
  return add_registration(comm, memory, bytes, true, window);
}
ncclResult_t deregister_window(ncclComm_t comm, void* window) { return ncclCommDeregister(comm, window); }
}  // namespace tokamak

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t slice = count * size_of(type);
  // NCCL 2.28.9's condition, on one node:
  const bool on_copy_engines = comm->config.CTAPolicy == NCCL_CTA_POLICY_ZERO && in_window(comm, from, slice) &&
                               in_window(comm, to, slice * static_cast<size_t>(comm->ranks));
  return enqueue(stream, comm, {"", "all_gather", slice, on_copy_engines}, [=] {
    show(comm, from, slice, [&](int rank, const std::byte* piece, size_t at, size_t bytes) {
      std::memcpy(static_cast<std::byte*>(to) + static_cast<size_t>(rank) * slice + at, piece, bytes);
    });
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  return enqueue(stream, comm, {"", "reduce_scatter", count * size_of(type) * static_cast<size_t>(comm->ranks)}, [=] {
    for (int r = 0; r < comm->ranks; ++r) {
      sum_of_all(comm, static_cast<const float*>(from) + static_cast<size_t>(r) * count, static_cast<float*>(to), count,
                 r, r == comm->rank);
    }
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(stream, comm, {"", "all_reduce", count * size_of(type)}, [=] {
    if (type == ncclFloat64) {
      sum_of_all(comm, from, static_cast<double*>(to), count, 0, true);
    } else {
      sum_of_all(comm, from, static_cast<float*>(to), count, 0, true);
    }
  });
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  auto* memory = const_cast<std::byte*>(static_cast<const std::byte*>(from));
  group().sent.push_back({memory, count * size_of(type), peer, comm, stream});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  group().expected.push_back({static_cast<std::byte*>(to), count * size_of(type), peer, comm, stream});
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group().depth > 0) return ncclSuccess;
  const std::vector<Message> sent = std::move(group().sent), expected = std::move(group().expected);
  group() = {};
  if (sent.empty() && expected.empty()) return ncclSuccess;
  const Message& first = sent.empty() ? expected.front() : sent.front();
  size_t all = 0;
  for (const Message& message : sent) all += message.bytes;
  return enqueue(first.stream, first.comm, {"", "exchange", all}, [comm = first.comm, sent, expected] {
    const emulator::Access access;
    ++comm->collectives;
    if (!comm->meeting->mail.deliver(comm->rank, sent, expected)) {
      broken("a message of another size than its receiver expects");
    }
  });
}
