// Muon (Jordan 2024) on sharded matrices: each step orthogonalises the momentum of every matrix. Momentum and masters
// are slices, as for AdamW; one rank orthogonalises a whole matrix, once in the run. A round (muon_matrices.h) has five
// parts:
//
//   prepare         every rank updates the momentum of its pieces of the round's matrices.
//   to the owners   pieces travel inside the shard group of the owner.
//   orthogonalise   the owner runs Newton-Schulz on the whole matrix.
//   back            pieces of the result travel to the ranks that hold the slices, then to the other replicas.
//   apply           every rank updates masters and compute copies of its pieces.
//
// Its buffers lie in those of whole gradients, which are idle during the update, if these exist and suffice.
// With overlap, round k + 1 travels to its owners, and round k - 1 back, while round k is orthogonalised. The GEMMs see
// whole matrices, so equal gradients give the same bits for any number of ranks, replicas and ZeRO stage.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optim/muon_matrices.h"
#include "optim/optimizer.h"
#include "tensor/arena.h"

namespace tokamak {

class Muon {
 public:
  // Plans the buffers that do not fit there as "optimizer/orthogonalise". `parameters` outlives this. `momentum` has no
  // data yet.
  Muon(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters, const WeightRules& rules,
       const StateTensor& momentum, MemoryPlan& plan);
  void commit(const Arena& arena, Tensor momentum);

  void begin();  // a step
  // Enqueues what the matrices of this part still need in this step, in the order of update_parts().
  void finish(const UpdatePart& part, Stream& compute, const UpdateStep& step);

 private:
  static constexpr int64_t kSets = 3;  // rounds in progress: one travels there, one is computed, one travels back

  // This rank's elements of a matrix.
  struct Piece {
    const MuonMatrix* matrix = nullptr;
    int64_t offset = 0;          // of the first, in the matrix
    int64_t begin = 0, end = 0;  // of the shard
    int64_t momentum = 0;        // of the first, in the momentum
    int64_t index = 0;           // of the first, in the model
    int64_t place = 0;           // of the first, among the pieces that travel

    int64_t count() const { return end - begin; }
  };
  // The elements that a rank of the shard group holds of the matrix that this rank owns.
  struct Share {
    int peer = 0;
    int64_t offset = 0, count = 0;
  };
  struct Round {
    const MuonMatrix* own = nullptr;  // that this rank orthogonalises
    std::vector<Share> shares;        // of it, on the other ranks of the shard group
    std::vector<Piece> pieces;        // of all matrices of the round
  };
  // The buffers of a round in progress.
  struct Set {
    Tensor pieces;  // directions that travel to owners, then results
    Tensor x, y;    // the own matrix, before and while it is orthogonalised
    Tensor result;  // one of the two
    std::unique_ptr<Event> prepared, arrived, done, back;
  };

  void add_pieces(const StateTensor& momentum);
  std::vector<Share> shares_of(const MuonMatrix& matrix) const;
  Set& set_of(int64_t round) { return sets_[round % kSets]; }
  bool in_own_replica(const MuonMatrix& matrix) const;
  bool owns(const MuonMatrix& matrix) const;
  Tensor direction_of(const Piece& piece, Set& set) const;
  Tensor result_of(const Piece& piece, Set& set) const;

  void prepare(int64_t number, Stream& compute, const UpdateStep& step);
  void send_to_owners(int64_t number, Stream& compute);
  void orthogonalise(int64_t number, Stream& compute);
  void send_back(int64_t number, Stream& compute);
  void apply(int64_t number, Stream& compute, const UpdateStep& step);

  MuonOptions options_;
  uint64_t seed_;
  ShardedParameters& parameters_;
  std::vector<MuonMatrix> matrices_;
  std::vector<Round> rounds_;
  std::vector<int64_t> last_round_;  // of each unit; -1: none

  // The place of a buffer: a lent one, from this byte on, or its own slot.
  struct BufferPlace {
    int64_t elements = 0;
    int64_t lent = -1;
    int64_t begin = 0;
    MemoryPlan::Slot slot = {};
  };
  BufferPlace place_buffer(const char* name, int64_t elements, std::vector<int64_t>& taken, MemoryPlan& plan) const;
  Tensor tensor_in(const BufferPlace& place, const Arena& arena) const;

  BufferPlace pieces_places_[kSets], x_places_[kSets], y_places_[kSets], gram_place_, polynomial_place_;
  MemoryPlan::Slot norm_slot_;
  Set sets_[kSets];
  Tensor gram_, polynomial_, norm_, momentum_;
  int64_t started_ = 0, computed_ = 0, applied_ = 0;  // rounds of this step
};

}  // namespace tokamak
