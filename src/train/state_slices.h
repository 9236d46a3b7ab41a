// The run's state as a checkpoint's named slices in host memory: HostState for what is read, StateSnapshot for what is
// saved. On a device whose memory is the host's, both may be the state itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/shard_file.h"
#include "checkpoint/snapshot_memory.h"
#include "engine/engine.h"

namespace tokamak {

ShardPlace place_of(const Engine& engine);  // which slice of every unit this rank holds; one replica writes them

// Host memory that a checkpoint is read into: the state itself, else a copy that push() brings to the device.
class HostState {
 public:
  // Built after engine.commit(); `engine` outlives this. Error(kDevice) if the host has no memory for the copy.
  explicit HostState(Engine& engine);

  void push();  // to the device, weights also in the compute dtype; then this object may be destroyed
  ShardPlace place() const { return place_of(engine_); }
  std::vector<UnitSlices> slices() const;  // this rank's, unit by unit: what push will take

 private:
  struct Part {
    Tensor state;                       // of one kind
    Tensor host;                        // its copy, or the state itself
    std::unique_ptr<std::byte[]> copy;  // the memory of `host`, unless that is the state itself
  };

  Engine& engine_;
  std::vector<StateTensor> state_;
  std::vector<Part> parts_;  // of each of these
};

// Host memory that a checkpoint is written from: the snapshot that the engine plans, or the state itself.
class StateSnapshot {
 public:
  explicit StateSnapshot(Engine& engine);  // after engine.commit(); `engine` outlives this

  // Starts a thread that allocates the snapshot's memory; later calls throw its Error(kDevice).
  void take_memory();

  // Copies the state, as of all work enqueued so far; waits for memory that is not allocated yet, or throws its Error.
  void fetch();
  std::vector<UnitSlices> slices();  // this rank's, unit by unit: what fetch brought

 private:
  void copy_state();  // to the memory
  // The memory of elements [begin, end) of a part of the state, in pieces: f32 or bf16.
  std::vector<Tensor> copies_of(size_t part, int64_t begin, int64_t end);

  Engine& engine_;
  std::vector<StateTensor> state_;
  std::optional<SnapshotMemory> memory_;  // the parts of the state, one after another
  std::vector<int64_t> begins_;           // of each part in memory_, in bytes
};

}  // namespace tokamak
