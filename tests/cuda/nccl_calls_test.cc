// What cuda/nccl asks of NCCL, as the emulator's NCCL records it: on 2, 3 and 4 ranks, by nccl_comm_test's program.
#include <nccl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/error.h"
#include "nccl_ranks.h"
#include "nccl_record.h"

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
