// The group by which ranks on GPUs exchange tensors, under mpirun: on the emulator, or on a GPU that the ranks share.
// Values are small integers, so that sums are exact in any order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <numeric>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/data_comm.h"
#include "comm/exchange.h"
#include "comm/mesh.h"
#include "comm/world.h"
#include "nccl_ranks.h"
#include "support/catch.h"
#include "support/facts.h"

using namespace tokamak;

using namespace tokamak::nccl_ranks;

namespace tokamak::nccl_ranks {

World* world = nullptr;
Backend* backend = nullptr;
Comm* data = nullptr;

int nodes() {
  const char* const nodes = std::getenv("TOKAMAK_TEST_NODES");
  return nodes == nullptr ? 1 : std::atoi(nodes);
}

RuntimeOptions options() {
  RuntimeOptions options;
  options.backend = BackendKind::kCuda;
  options.nccl_max_ctas = 4;
  options.nccl_warm_up = 64 << 10;
  options.deterministic = std::getenv("TOKAMAK_TEST_DETERMINISTIC") != nullptr;
  options.ranks_per_gpu = (world->local_size() + cuda_presence().devices - 1) / cuda_presence().devices;
  return options;
}

}  // namespace tokamak::nccl_ranks

TEST_CASE("all_gather puts the slices in the order of the ranks, in place or not") {
  constexpr int64_t kSlice = 192;
  Exchanged memory;
  const auto slice = memory.add(DType::kBF16, kSlice), full = memory.add(DType::kBF16, kSlice * data->size());
  memory.commit();
  Comm* const group = data;
  std::vector<bf16> own;
  for (int64_t i = 0; i < kSlice; ++i) own.emplace_back(static_cast<float>(group->rank() + i));
  const auto check = [&] {
    const auto all = memory.read<bf16>(memory[full]);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kSlice * group->size(); ++i) {
      wrong += to_float(all[static_cast<size_t>(i)]) != static_cast<float>(i / kSlice + i % kSlice);
    }
    CHECK(wrong == 0);
  };
  memory.write(memory[slice], own);
  group->all_gather(*memory.stream, memory[slice], memory[full]);
  check();
  memory.write(memory[full], std::vector<bf16>(static_cast<size_t>(kSlice * group->size()), bf16(-1.0f)));
  const Tensor place = memory[full].flat(group->rank() * kSlice, (group->rank() + 1) * kSlice);
  memory.write(place, own);
  group->all_gather(*memory.stream, place, memory[full]);
  check();
}

TEST_CASE("all_gather moves megabytes") {
  for (const int64_t megabytes : {1, 16, 64}) {
    Exchanged memory;
    const auto full = memory.add(DType::kBF16, megabytes << 19);
    memory.commit();
    const int64_t slice = memory[full].count() / data->size() / 64 * 64;
    const Tensor all = memory[full].flat(0, slice * data->size());
    const Tensor own = all.flat(data->rank() * slice, (data->rank() + 1) * slice);
    memory.write(own, std::vector<bf16>(static_cast<size_t>(slice), bf16(static_cast<float>(data->rank() + 1))));
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 3; ++run) {  // the first one sets up transports
      data->barrier();
      const Stopwatch watch;
      data->all_gather(*memory.stream, own, all);
      memory.stream->synchronize();
      best = std::min(best, watch.seconds());
    }
    const auto gathered = memory.read<bf16>(all);
    int64_t wrong = 0;
    for (int64_t i = 0; i < all.count(); ++i) {
      wrong += to_float(gathered[static_cast<size_t>(i)]) != static_cast<float>(i / slice + 1);
    }
    CHECK(wrong == 0);
    if (data->rank() == 0) {
      tell_measured(str("NCCL, ", data->size(), " ranks, all_gather to ", megabytes, " MiB"), 1e3 * best, "ms");
    }
  }
}

TEST_CASE("reduce_scatter sums what every rank holds of a slice, in either dtype, in one round or several") {
  // Three rounds, since the third one uses the buffers of the first one.
  const int64_t rounds = ExchangeRounds::kElements / data->size() * 9 / 4 / 64 * 64;
  for (const int64_t length : {int64_t{64}, int64_t{4160}, rounds}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      if (length == rounds && dtype == DType::kF32) continue;
      INFO("slices of " << length);
      Exchanged memory;
      const auto full = memory.add(DType::kF32, length * data->size()), slice = memory.add(DType::kF32, length);
      const int64_t elements = data->scratch_elements(length, dtype);
      CHECK((elements > 0) == (dtype == DType::kBF16));
      const auto scratch = memory.add(dtype, std::max<int64_t>(elements, 1));
      memory.commit();
      Comm* const group = data;
      const auto value = [](int64_t i, int rank) { return static_cast<float>(i % 61 + rank); };
      std::vector<float> own(static_cast<size_t>(length * group->size()));
      for (size_t i = 0; i < own.size(); ++i) own[i] = value(static_cast<int64_t>(i), group->rank());
      memory.write(memory[full], own);
      group->reduce_scatter(*memory.stream,
                            {.full = memory[full], .slice = memory[slice], .dtype = dtype, .scratch = memory[scratch]});
      const auto sums = memory.read<float>(memory[slice]);
      int64_t wrong = 0;
      for (int64_t i = 0; i < length; ++i) {
        float expected = 0;
        for (int r = 0; r < group->size(); ++r) expected += value(group->rank() * length + i, r);
        wrong += sums[static_cast<size_t>(i)] != expected;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("an exchange moves tensors of any size and alignment between pairs of ranks, in the order of the lists") {
  struct Message {
    int from, to;
    MemoryPlan::Slot out, in;
  };
  const int ranks = data->size(), rank = data->rank();
  Exchanged memory;
  std::vector<Message> messages;
  for (int from = 0; from < ranks - 1; ++from) {  // the last rank only receives
    for (int to = 0; to < ranks; ++to) {
      for (const DType dtype : {DType::kBF16, DType::kF32, DType::kBF16}) {
        const int64_t count = 2 + (to == from + 1 ? 100'000 : 10 * from + to);
        messages.push_back({from, to, memory.add(dtype, count), memory.add(dtype, count)});
      }
    }
  }
  memory.commit();
  const auto value = [](size_t id, size_t i) { return static_cast<float>((id * 37 + i) % 251); };
  // The first element of each slot does not travel, so tensors begin anywhere.
  const auto tensor = [&](MemoryPlan::Slot slot) { return memory[slot].flat(1, memory[slot].count()); };
  std::vector<Comm::Transfer> sends, receives;
  for (size_t id = 0; id < messages.size(); ++id) {
    const Message& m = messages[id];
    if (m.from == rank) sends.push_back({m.to, tensor(m.out)});
    if (m.to == rank) receives.push_back({m.from, tensor(m.in)});
    with_act_type(memory[m.out].dtype(), [&]<class T>(T) {
      std::vector<T> values(static_cast<size_t>(memory[m.out].count()), from_float<T>(-1));
      memory.write(memory[m.in], values);
      for (size_t i = 0; i < values.size(); ++i) values[i] = from_float<T>(value(id, i));
      memory.write(memory[m.out], values);
    });
  }
  data->exchange(*memory.stream, sends, receives);
  data->exchange(*memory.stream, {}, {});
  int64_t wrong = 0;
  for (size_t id = 0; id < messages.size(); ++id) {
    const Message& m = messages[id];
    with_act_type(memory[m.in].dtype(), [&]<class T>(T) {
      const std::vector<T> values = memory.read<T>(memory[m.in]);
      for (size_t i = 0; i < values.size(); ++i) {
        wrong += to_float(values[i]) != (m.to == rank && i > 0 ? value(id, i) : -1);
      }
    });
  }
  CHECK(wrong == 0);
}

TEST_CASE("a bf16 reduction has communicators of a node and between nodes where there are both") {
  CHECK(data->reserve_bytes() == (nodes() > 1 ? 4 : 2) * kNcclReserveBytes);
}

TEST_CASE("memory that NCCL refuses on one rank is used unregistered on all") {
  const char* const refuse = "TOKAMAK_EMULATOR_NCCL_NO_MEMORY";
  if (data->rank() == 1) setenv(refuse, "1", 1);
  for (int time = 0; time < 2; ++time) {  // the second memory is registered, and alone
    Exchanged memory;
    const auto slice = memory.add(DType::kF32, 64), full = memory.add(DType::kF32, 64 * data->size());
    memory.commit();
    memory.write(memory[slice], std::vector<float>(64, static_cast<float>(data->rank())));
    data->all_gather(*memory.stream, memory[slice], memory[full]);
    CHECK(memory.read<float>(memory[full]).back() == static_cast<float>(data->size() - 1));
    unsetenv(refuse);
  }
}

TEST_CASE("a reduction in bf16 rounds each contribution, and the sum stays f32") {
  Exchanged memory;
  const auto full = memory.add(DType::kF32, 64 * data->size()), slice = memory.add(DType::kF32, 64);
  const auto scratch = memory.add(DType::kBF16, data->scratch_elements(64, DType::kBF16));
  memory.commit();
  memory.write(memory[full], std::vector<float>(static_cast<size_t>(64 * data->size()), 1.0f + 0x1p-10f));
  Comm* const group = data;
  group->reduce_scatter(
      *memory.stream,
      {.full = memory[full], .slice = memory[slice], .dtype = DType::kBF16, .scratch = memory[scratch]});
  CHECK(memory.read<float>(memory[slice])[7] == static_cast<float>(data->size()));
  group->reduce_scatter(*memory.stream, {.full = memory[full], .slice = memory[slice]});
  CHECK(memory.read<float>(memory[slice])[7] == static_cast<float>(data->size()) * (1.0f + 0x1p-10f));
}

TEST_CASE("inside a node, contributions in bf16 are summed in f32 in the order of the ranks, bit for bit") {
  if (nodes() > 1) return;
  constexpr int64_t kSlice = 4160;
  Exchanged memory;
  const auto full = memory.add(DType::kF32, kSlice * data->size()), slice = memory.add(DType::kF32, kSlice);
  const auto scratch = memory.add(DType::kBF16, data->scratch_elements(kSlice, DType::kBF16));
  memory.commit();
  // Values differ in size, so that another order or a rounded sum gives other bits.
  const auto value = [](int64_t i, int rank) {
    return static_cast<float>((i * 7 + rank * 13) % 251 + 1) * (rank % 2 == 0 ? 3e2f : 1.7e-3f);
  };
  std::vector<float> own(static_cast<size_t>(kSlice * data->size())), expected(static_cast<size_t>(kSlice));
  for (size_t i = 0; i < own.size(); ++i) own[i] = value(static_cast<int64_t>(i), data->rank());
  for (int64_t i = 0; i < kSlice; ++i) {
    for (int r = 0; r < data->size(); ++r) {
      expected[static_cast<size_t>(i)] += to_float(bf16(value(data->rank() * kSlice + i, r)));
    }
  }
  memory.write(memory[full], own);
  data->reduce_scatter(
      *memory.stream,
      {.full = memory[full], .slice = memory[slice], .dtype = DType::kBF16, .scratch = memory[scratch]});
  CHECK(memory.read<float>(memory[slice]) == expected);
}

TEST_CASE("all_reduce sums a handful of numbers of either type") {
  Exchanged memory;
  const auto wide = memory.add(DType::kF64, 2), narrow = memory.add(DType::kF32, 3);
  memory.commit();
  const int ranks = data->size(), rank = data->rank();
  memory.write(memory[wide], std::vector<double>{1.0, static_cast<double>(rank)});
  memory.write(memory[narrow], std::vector<float>{2.0f, 0.0f, static_cast<float>(rank)});
  data->all_reduce(*memory.stream, memory[wide]);
  data->all_reduce(*memory.stream, memory[narrow]);
  CHECK((memory.read<double>(memory[wide]) == std::vector<double>{1.0 * ranks, ranks * (ranks - 1) / 2.0}));
  CHECK((memory.read<float>(memory[narrow]) ==
         std::vector<float>{2.0f * static_cast<float>(ranks), 0.0f, static_cast<float>(ranks * (ranks - 1)) / 2}));
}

TEST_CASE("host values travel by the data group, too") {
  std::string text = data->rank() == 0 ? "from rank 0" : "";
  data->broadcast(text, 0);
  CHECK(text == "from rank 0");
  CHECK(data->gather_all(str(data->rank())).back() == str(data->size() - 1));
  CHECK(data->max(data->rank() * 7) == (data->size() - 1) * 7);
  data->barrier();
}

TEST_CASE("split makes groups in the order of the ranks, that sum among themselves") {
  const auto part = data->split(data->rank() % 2);
  CHECK(part->rank() == data->rank() / 2);
  Exchanged memory;
  const auto x = memory.add(DType::kF64, 1);
  memory.commit();
  memory.write(memory[x], std::vector<double>{static_cast<double>(data->rank())});
  part->all_reduce(*memory.stream, memory[x]);
  double expected = 0;
  for (int r = data->rank() % 2; r < data->size(); r += 2) expected += r;
  CHECK(memory.read<double>(memory[x])[0] == expected);
}

TEST_CASE("the groups of a mesh sum in place, in f32 and in bf16, side by side") {
  for (int replicas = 1; replicas <= data->size(); ++replicas) {
    if (data->size() % replicas != 0) continue;
    const MeshGroups groups(*data, replicas);
    const Mesh& mesh = groups.mesh();
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const auto check = [&](Comm& group, const auto& is_member) {
        constexpr int64_t kPart = 192;
        Exchanged memory;
        const auto x = memory.add(DType::kF32, kPart * group.size());
        const auto scratch = memory.add(dtype, std::max<int64_t>(group.scratch_elements(kPart, dtype), 1));
        memory.commit();
        const auto value = [](int64_t i, int rank) { return static_cast<float>(i % 61 + (1 << rank)); };
        std::vector<float> own(static_cast<size_t>(kPart * group.size())), expected(own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          own[i] = value(static_cast<int64_t>(i), data->rank());
          for (int r = 0; r < data->size(); ++r) {
            if (is_member(r)) expected[i] += value(static_cast<int64_t>(i), r);
          }
        }
        memory.write(memory[x], own);
        const Tensor part = memory[x].flat(group.rank() * kPart, (group.rank() + 1) * kPart);
        group.reduce_scatter(*memory.stream,
                             {.full = memory[x], .slice = part, .dtype = dtype, .scratch = memory[scratch]});
        group.all_gather(*memory.stream, part, memory[x]);
        CHECK(memory.read<float>(memory[x]) == expected);
      };
      const int shards = data->size() / replicas, rank = data->rank();
      if (shards > 1) check(mesh.shard(), [&](int r) { return r / shards == rank / shards; });
      if (replicas > 1) check(mesh.replicate(), [&](int r) { return r % shards == rank % shards; });
    }
  }
}

int main(int argc, char** argv) {
  World own_world;
  world = &own_world;
  log::configure(world->rank(), world->size(), log::Level::kWarning);
  const auto skipped = [](const std::string& why) {
    constexpr int kSkipped = 77;
    if (world->rank() == 0) std::cout << "nccl_comm_test skipped: " << why << std::endl;
    return kSkipped;
  };
  if (const CudaPresence presence = cuda_presence(); presence.devices == 0) return skipped(presence.missing);
  Backend own_backend = make_cuda_backend(options(), world->local_rank());
  backend = &own_backend;
  std::unique_ptr<Comm> own_data;
  try {
    if (nodes() > 1) setenv("NCCL_HOSTID", str("node-", world->rank() % nodes()).c_str(), 1);
    own_data = make_data_comm(world->comm(), *backend->device, options(), Precision::kBF16);
  } catch (const Error& error) {
    if (error.kind() != Kind::kDevice) {
      std::cerr << error.what() << std::endl;
      world->end_all(error.exit_code());
    }
    return skipped(error.what());  // no NCCL
  }
  data = own_data.get();
  // Under the mpirun of another MPI, every process is alone, and would pass.
  if (world->rank() == 0) std::cout << "nccl_comm_test: " << data->size() << " ranks" << std::endl;
  return tokamak::run_catch(argc, argv);
}
