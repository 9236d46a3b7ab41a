// The seam between the run's state and a checkpoint's named slices, which lie in host memory: the engine's snapshot, taken
// before a save and brought back after a load. An engine without one loads into the state itself where the device's
// memory is the host's, else into a copy made here.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/shard_file.h"
#include "engine/engine.h"

namespace tokamak {

class HostState {
 public:
  // Of engine.state(), after engine.commit(); `engine` outlives this. Error(kDevice) where the host has no memory for
  // the copy.
  explicit HostState(Engine& engine);

  void fetch();  // from the device, after all work enqueued so far
  void push();   // to the device

  ShardPlace place() const;  // which slice of every unit this rank holds; one replica writes them
  // This rank's slices, unit by unit: what fetch brought, or what push will take.
  std::vector<UnitSlices> slices() const;

 private:
  struct Part {
    const char* kind;
    Tensor state;                   // (shard_elements) f32
    Tensor host;                    // its copy, or the state itself
    std::unique_ptr<float[]> copy;  // what `host` is, where the engine has none to give
  };

  Engine& engine_;
  std::vector<Part> parts_;
};

}  // namespace tokamak
