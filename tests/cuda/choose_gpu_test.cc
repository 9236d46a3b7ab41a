#include "cuda/choose_gpu.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("a rank uses the GPU of its local rank, or the only visible one") {
  const ShownGpus all{.count = 8}, own{.count = 1, .restricted = true};
  CHECK(choose_gpu(7, all, 1) == 7);
  CHECK(choose_gpu(7, all, 4) == 1);
  CHECK_FALSE(choose_gpu(8, all, 1).has_value());
  CHECK(choose_gpu(0, own, 1) == 0);
  CHECK(choose_gpu(7, own, 1) == 0);                                            // srun --gpus-per-task=1
  CHECK_FALSE(choose_gpu(1, {.count = 1}, 1).has_value());                      // two ranks on a machine with one
  CHECK_FALSE(choose_gpu(2, {.count = 2, .restricted = true}, 1).has_value());  // more ranks than GPUs that they see
}
