#include "train/memory_check.h"

#include "base/error.h"

namespace tokamak {

int64_t memory_share(const Device& device, int local_size) { return device.available_bytes() / local_size; }

void expect_fit(const MemoryPlan& plan, int64_t available, int local_size, const RunConfig& config,
                int64_t micro_batch) {
  const int64_t needed = plan.total_bytes();
  if (needed <= available) return;
  std::vector<std::string> help;
  if (micro_batch > 1) help.push_back(str("lower training.micro_batch_size (now ", micro_batch, ")"));
  if (config.activation_checkpoint.mode == RecomputeMode::kNone) help.push_back("activation_checkpoint.mode: full");
  help.push_back("more ranks on more nodes, each holding a smaller part of the state");
  fail(Kind::kDevice,
       str("the run needs ", human_bytes(static_cast<double>(needed)), " on each rank, but ",
           human_bytes(static_cast<double>(available)), " are available",
           local_size > 1 ? str(" to each of ", local_size, " ranks of this node") : ""),
       str("what would help: ", join(help, "; "), "\nplan:\n", plan.report()));
}

}  // namespace tokamak
