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
