// Exchanges of tensors between pairs of ranks. Every rank knows all messages; values name the message and the element,
// and are exact in bf16.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/no_stream.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

struct Message {
  int from, to;
  DType dtype;
  int64_t count;
};

// Up to 30 messages between random pairs: several between some, none at some ranks, some from a rank to itself.
std::vector<Message> random_messages(unsigned seed, int ranks) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  std::vector<Message> messages(static_cast<size_t>(below(31)));
  for (Message& m : messages) {
    m = {static_cast<int>(below(ranks)), static_cast<int>(below(ranks)), below(2) == 0 ? DType::kF32 : DType::kBF16,
         1 + below(below(2) == 0 ? 7 : 5000)};
  }
  return messages;
}

// One rank's part of an exchange. Each tensor lies between guards, so it is aligned to no more than four bytes.
class Part {
 public:
  Part(const Comm& comm, const std::vector<Message>& messages) {
    for (size_t id = 0; id < messages.size(); ++id) {
      const Message& m = messages[id];
      if (m.from == comm.rank()) {
        sends.push_back({m.to, make(m)});
        with_act_type(m.dtype, [&]<class T>(T) {
          for (int64_t i = 0; i < m.count; ++i) sends.back().tensor.as<T>()[i] = from_float<T>(value(id, i));
        });
      }
      if (m.to == comm.rank()) expected_.push_back({id, {m.from, make(m)}});
    }
    // The receives are in another order than the sends, except between two ranks.
    std::stable_sort(expected_.begin(), expected_.end(),
                     [](const Expected& x, const Expected& y) { return x.transfer.peer < y.transfer.peer; });
    for (const Expected& expected : expected_) receives.push_back(expected.transfer);
  }

  int64_t wrong() const {
    int64_t wrong = 0;
    for (const Expected& expected : expected_) {
      const Tensor& tensor = expected.transfer.tensor;
      with_act_type(tensor.dtype(), [&]<class T>(T) {
        for (int64_t i = 0; i < tensor.count(); ++i) wrong += to_float(tensor.as<T>()[i]) != value(expected.id, i);
      });
    }
    for (const std::vector<char>& bytes : memory_) {
      wrong += kGuard - std::count(bytes.begin(), bytes.begin() + kGuard, 'x');
      wrong += kGuard - std::count(bytes.end() - kGuard, bytes.end(), 'x');
    }
    return wrong;
  }

  std::vector<Comm::Transfer> sends, receives;

 private:
  static constexpr int64_t kGuard = 4;  // bytes
  struct Expected {
    size_t id;
    Comm::Transfer transfer;
  };

  static float value(size_t id, int64_t i) { return static_cast<float>((static_cast<int64_t>(id) * 37 + i) % 251); }

  Tensor make(const Message& m) {
    std::vector<char>& bytes = memory_.emplace_back(static_cast<size_t>(m.count * size_of(m.dtype) + 2 * kGuard), 'x');
    return {bytes.data() + kGuard, m.dtype, Shape{m.count}};
  }

  std::vector<Expected> expected_;
  std::vector<std::vector<char>> memory_;
};

int64_t wrong_in_exchange(Comm& comm, const std::vector<Message>& messages) {
  NoStream stream;
  Part part(comm, messages);
  comm.exchange(stream, part.sends, part.receives);
  return part.wrong();
}

}  // namespace

RANKS_CASE("tensors of any size and alignment reach their peers, those of two ranks in the order of the lists",
           "[exchange]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const int64_t wrong = wrong_in_exchange(world.comm(), random_messages(seed, world.size()));
    if (wrong > 0) FAIL("seed " + std::to_string(seed));
  }
}

RANKS_CASE("an exchange may leave ranks out, or all", "[exchange]") {
  const int last = world.size() - 1;
  CHECK(wrong_in_exchange(world.comm(), {}) == 0);
  CHECK(wrong_in_exchange(world.comm(), {{last, 0, DType::kBF16, 3}}) == 0);
  CHECK(wrong_in_exchange(world.comm(), {{0, last, DType::kF32, 5}, {0, last, DType::kF32, 5}}) == 0);
}

RANKS_CASE("an exchange of more than MPI moves in one message, and a short one behind it", "[exchange][large]") {
  const int64_t count = (int64_t{8} << 20) / size_of(DType::kF32) + 3;
  std::vector<Message> messages;
  for (int r = 0; r < world.size(); ++r) {
    messages.push_back({r, (r + 1) % world.size(), DType::kF32, count});
    messages.push_back({r, (r + 1) % world.size(), DType::kBF16, 7});
  }
  CHECK(wrong_in_exchange(world.comm(), messages) == 0);
}

RANKS_CASE("exchanges follow each other on a stream, which keeps the lists, in the group and in parts of it",
           "[exchange]") {
  Comm& comm = world.comm();
  const auto half = comm.split(comm.rank() % 2);
  const Backend cpu = make_cpu_backend();
  const auto stream = cpu.device->make_stream({.name = "reduce", .priority = StreamPriority::kHigh});
  std::vector<std::unique_ptr<Part>> parts;
  for (unsigned seed = 100; seed < 120; ++seed) {
    Comm& group = seed % 3 == 0 ? *half : comm;
    Part& part = *parts.emplace_back(std::make_unique<Part>(group, random_messages(seed, group.size())));
    group.exchange(*stream, std::vector(part.sends), std::vector(part.receives));
  }
  stream->synchronize();
  for (const auto& part : parts) CHECK(part->wrong() == 0);
}

RANKS_CASE("an exchange waits neither for a gather on another stream nor for the host's calls", "[exchange]") {
  Comm& comm = world.comm();
  const Backend cpu = make_cpu_backend();
  const auto gathers = cpu.device->make_stream({.name = "gather", .priority = StreamPriority::kHigh});
  const auto exchanges = cpu.device->make_stream({.name = "reduce", .priority = StreamPriority::kHigh});
  constexpr int64_t kSlice = 4096;
  for (unsigned round = 0; round < 3; ++round) {
    const auto value = [&](int rank) { return static_cast<float>(rank + static_cast<int>(round)); };
    std::vector<float> slice(kSlice, value(comm.rank())), whole(static_cast<size_t>(kSlice * comm.size()), -1);
    Part part(comm, random_messages(200 + round, comm.size()));
    const auto gather = [&] {
      comm.all_gather(*gathers, Tensor(slice.data(), DType::kF32, Shape{kSlice}),
                      Tensor(whole.data(), DType::kF32, Shape{kSlice * comm.size()}));
    };
    const auto exchange = [&] { comm.exchange(*exchanges, part.sends, part.receives); };
    // Half of the ranks exchange first. The others wait for the gather, which can only complete if all take part.
    if (comm.rank() % 2 == 0) {
      exchange();
      gather();
    } else {
      gather();
      gathers->synchronize();
      exchange();
    }
    const int64_t highest = comm.max(comm.rank());
    gathers->synchronize();
    exchanges->synchronize();
    CHECK(highest == comm.size() - 1);
    for (int r = 0; r < comm.size(); ++r) CHECK(whole[r * kSlice + 7] == value(r));
    CHECK(part.wrong() == 0);
  }
}

RANKS_CASE("an exchange refuses strangers, other dtypes, empty tensors, and lists of a rank to itself that differ",
           "[exchange]") {
  Comm& comm = world.comm();
  NoStream stream;
  std::vector<double> numbers(4);
  const Tensor f32(numbers.data(), DType::kF32, Shape{2}), bf16(numbers.data() + 1, DType::kBF16, Shape{2});
  const Tensor f64(numbers.data(), DType::kF64, Shape{2}), none(numbers.data(), DType::kF32, Shape{0});
  const auto refused = [&](const std::vector<Comm::Transfer>& sends, const std::vector<Comm::Transfer>& receives) {
    CHECK_THROWS_AS(comm.exchange(stream, sends, receives), Error);
  };
  refused({{comm.size(), f32}}, {});
  refused({}, {{-1, f32}});
  const int self = comm.rank();
  for (const Tensor& tensor : {f64, none, Tensor()}) refused({{self, tensor}}, {{self, tensor}});
  refused({{self, f32}}, {});
  refused({{self, f32}}, {{self, bf16}});
  refused({{self, f32}}, {{self, f32.flat(0, 1)}});
}
