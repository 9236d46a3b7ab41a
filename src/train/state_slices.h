// The seam between the run's state and a checkpoint's named slices, which lie in host memory. Where the device's memory
// is the host's they are the state itself; else a copy of it, taken before a save and brought back after a load.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/shard_file.h"
#include "engine/engine.h"

namespace tokamak {

// Which slice of every unit this rank holds.
ShardPlace shard_place(const Comm& comm);

class HostState {
 public:
  // Of master weights and moments in training; of the masters alone otherwise. After engine.commit(), and outlived by
  // `engine`. Error(kDevice) where the host has no memory for the copy.
  explicit HostState(Engine& engine);

  void fetch();  // from the device, after all work enqueued so far
  void push();   // to the device

  // This rank's slices, unit by unit: what fetch brought, or what push will take.
  std::vector<UnitSlices> slices() const;

 private:
  struct Part {
    const char* kind;
    Tensor state;                   // (shard_elements) f32
    Tensor host;                    // the same, or its copy
    std::unique_ptr<float[]> copy;  // none where the host may touch the state
  };

  Engine& engine_;
  std::vector<Part> parts_;
};

}  // namespace tokamak
