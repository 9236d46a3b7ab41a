// Calls of cuda/nccl, as the emulator's NCCL records them: on 2, 3 and 4 ranks, by nccl_comm_test's program.
#include <nccl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>

#include "base/error.h"
#include "comm/exchange.h"
#include "comm/mesh.h"
#include "cuda/device.h"
#include "emulator/nccl_record.h"
#include "nccl_ranks.h"

using namespace tokamak;
using namespace tokamak::nccl_ranks;

namespace {

bool has_windows() { return std::getenv("TOKAMAK_EMULATOR_NCCL_NO_WINDOWS") == nullptr; }
std::string all_ranks() { return data->size() == 2 ? "ranks 0, 1" : str("ranks 0 to ", data->size() - 1); }

emulator::NcclCommunicator communicator(const std::string& name) {
  const auto& all = emulator::nccl_record().communicators;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& made) { return made.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

// "all_gather by gathers of ranks 0, 1: 8192"
std::vector<std::string> texts(std::vector<emulator::NcclCall> calls) {
  std::vector<std::string> texts;
  for (const auto& call : calls) texts.push_back(str(call.what, " by ", call.communicator, ": ", call.bytes));
  return texts;
}

std::vector<emulator::NcclCommunicator> made_by(const std::function<void()>& body) {
  const auto before = static_cast<std::ptrdiff_t>(emulator::nccl_record().communicators.size());
  body();
  const auto& all = emulator::nccl_record().communicators;
  return {all.begin() + before, all.end()};
}

}  // namespace

TEST_CASE("gathers have a communicator that may use no thread block, reductions one by NCCL's choice") {
  CHECK(communicator("gathers of " + all_ranks()).cta_policy == NCCL_CTA_POLICY_ZERO);
  CHECK(communicator("reductions of " + all_ranks()).cta_policy == NCCL_CONFIG_UNDEF_INT);
  for (const auto& made : emulator::nccl_record().communicators) CHECK(made.max_ctas == options().nccl_max_ctas);
}

TEST_CASE("copy engines gather what lies in symmetric windows, in place or not") {
  Exchanged memory;
  const auto slice = memory.add(DType::kF32, 64), full = memory.add(DType::kF32, 64 * data->size());
  memory.commit();
  const auto gathers = [&](Tensor own) {
    data->all_gather(*memory.stream, own, memory[full]);
    memory.stream->synchronize();
    const emulator::NcclCall last = emulator::nccl_record().calls.back();
    CHECK(last.what == "all_gather");
    return last.on_copy_engines;
  };
  CHECK(gathers(memory[slice]) == has_windows());
  CHECK(gathers(memory[full].flat(64 * data->rank(), 64 * (data->rank() + 1))) == has_windows());
}

TEST_CASE("a group's communicators run each collective of theirs while it is made, at two sizes, in this order") {
  const int ranks = data->size();
  const std::string gathers = "gathers of " + all_ranks(), reductions = "reductions of " + all_ranks();
  std::vector<std::string> expected;
  for (const int64_t slice : {int64_t{32}, options().nccl_warm_up / 4 / ranks / 32 * 32}) {
    expected.push_back(str("all_gather by ", gathers, ": ", 4 * slice));
    expected.push_back(str("reduce_scatter by ", reductions, ": ", 4 * slice * ranks));
    expected.push_back(str("all_reduce by ", reductions, ": ", 4 * slice * ranks));
    const std::string inside = nodes() > 1 ? str("reductions of node ", data->rank() % nodes()) : reductions;
    expected.push_back(str("exchange by ", inside, ": ", 2 * slice * ranks));
    if (nodes() > 1) expected.push_back(str("reduce_scatter by reductions of nodes: ", 4 * slice * nodes()));
  }
  const auto& calls = emulator::nccl_record().calls;
  REQUIRE(calls.size() >= expected.size());
  CHECK(texts({calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(expected.size())}) == expected);
}

TEST_CASE("the first collectives lie in memory as a step's do, which is released before the group is there") {
  const emulator::NcclRecord before = emulator::nccl_record();
  const auto part = data->split(data->rank() % 2);
  const emulator::NcclRecord after = emulator::nccl_record();
  CHECK(after.allocated == before.allocated);
  CHECK(after.registered == before.registered);
  CHECK(after.registrations.size() > before.registrations.size());
  const emulator::NcclCall first = after.calls.at(before.calls.size());
  CHECK(first.what == "all_gather");
  CHECK(first.on_copy_engines == has_windows());
  CHECK(part->pending_bytes() == 0);
  CHECK(part->reserve_bytes() > 0);
}

TEST_CASE("deterministic sums have no windows and go along rings, and gathers have windows as ever") {
  Exchanged memory;
  memory.add(DType::kF32, 64);
  const size_t before = emulator::nccl_record().registrations.size();
  memory.commit();
  const auto& all = emulator::nccl_record().registrations;
  REQUIRE(all.size() > before);
  for (size_t i = before; i < all.size(); ++i) {
    INFO(all[i].communicator);
    const bool gathers = all[i].communicator.rfind("gathers", 0) == 0;
    CHECK(all[i].window == (has_windows() && (gathers || !options().deterministic)));
  }
  const char* const algorithm = std::getenv("NCCL_ALGO");
  CHECK((algorithm == nullptr ? "" : std::string(algorithm)) == (options().deterministic ? "Ring" : ""));
}

TEST_CASE("the group of all ranks has the only communicators with ids of their own; the others are split from them") {
  for (const auto& made : emulator::nccl_record().communicators) {
    INFO(made.name);
    const bool of_all = made.name == "gathers of " + all_ranks() || made.name == "reductions of " + all_ranks();
    CHECK(made.parent.empty() == of_all);
    CHECK(made.shares == !of_all);
    CHECK(made.split_share == 1);
    CHECK(made.name.substr(0, 7) == (of_all ? made.name : made.parent).substr(0, 7));  // gathers or reductions
  }
  const auto inits =
      std::count_if(emulator::nccl_record().communicators.begin(), emulator::nccl_record().communicators.end(),
                    [](const auto& made) { return made.parent.empty(); });
  CHECK(inits == 2);
}

TEST_CASE("a shard group makes two communicators, a replicate group one, and a group of all ranks or of one none") {
  const int ranks = data->size();
  CHECK(made_by([] { CHECK(data->split(0)->reserve_bytes() == 0); }).empty());
  for (int replicas = 1; replicas <= ranks; ++replicas) {
    if (ranks % replicas != 0) continue;
    const auto made = made_by([&] { const MeshGroups groups(*data, replicas); });
    if (replicas == 1 || replicas == ranks) {
      CHECK(made.empty());
      continue;
    }
    const int shards = ranks / replicas, rank = data->rank(), first = rank / shards * shards;
    const std::string shard = str("ranks ", first, ", ", first + 1),
                      replicate = str("ranks ", rank % 2, ", ", rank % 2 + 2);
    std::vector<std::string> names;
    for (const auto& one : made) names.push_back(one.name);
    CHECK(names ==
          std::vector<std::string>{"gathers of " + shard, "reductions of " + shard, "reductions of " + replicate});
    for (const auto& one : made) CHECK(!one.lives);
  }
}

TEST_CASE("a reduction of several rounds exchanges on a stream of its own, one round ahead of the sums") {
  const int64_t slice = ExchangeRounds::kElements / data->size() * 9 / 4 / 64 * 64;
  Exchanged memory;
  const auto full = memory.add(DType::kF32, slice * data->size());
  const auto scratch = memory.add(DType::kBF16, data->scratch_elements(slice, DType::kBF16));
  memory.commit();
  const auto before = static_cast<std::ptrdiff_t>(emulator::nccl_record().calls.size());
  const Tensor own = memory[full].flat(slice * data->rank(), slice * (data->rank() + 1));
  data->reduce_scatter(*memory.stream,
                       {.full = memory[full], .slice = own, .dtype = DType::kBF16, .scratch = memory[scratch]});
  std::vector<std::string> calls;
  for (auto call = emulator::nccl_record().calls.begin() + before; call != emulator::nccl_record().calls.end();
       ++call) {
    calls.push_back(call->what);
    CHECK((call->stream == handle(*memory.stream)) == (call->what == "reduce_scatter"));
  }
  const std::string e = "exchange", r = "reduce_scatter";  // the latter between nodes, of the sums of a round
  CHECK(calls == (nodes() > 1 ? std::vector{e, e, r, e, r, r} : std::vector{e, e, e}));
}

TEST_CASE("an exchange uses the communicator of reductions, on the stream that it is given") {
  Exchanged memory;
  const auto x = memory.add(DType::kF32, 6);
  memory.commit();
  const int next = (data->rank() + 1) % data->size(), previous = (data->rank() + data->size() - 1) % data->size();
  const std::vector<Comm::Transfer> sends = {{next, memory[x].flat(0, 3)}},
                                    receives = {{previous, memory[x].flat(3, 6)}};
  data->exchange(*memory.stream, sends, receives);
  memory.stream->synchronize();
  const emulator::NcclCall last = emulator::nccl_record().calls.back();
  CHECK(texts({last}) == std::vector{str("exchange by reductions of ", all_ranks(), ": 12")});
  CHECK(last.stream == handle(*memory.stream));
}

// Runs alone (the tag hides it), since no case may follow it.
TEST_CASE("an error ends a part of a group before the group", "[.abort]") {
  const auto fails = [] {
    const auto part = data->split(data->rank() % 2);
    throw Error(Kind::kNumerics, "on purpose", "");
  };
  const auto made = made_by([&] { CHECK_THROWS_WITH(fails(), Catch::Contains("on purpose")); });
  CHECK(!made.empty());
  for (const auto& one : made) CHECK((one.aborted && !one.lives));
  CHECK(communicator("gathers of " + all_ranks()).lives);
}
