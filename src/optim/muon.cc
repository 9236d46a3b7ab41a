#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optim/newton_schulz.h"
#include "optim/own_weights.h"

namespace tokamak {

namespace {

// c of the update: lr c times the orthogonal matrix (pytorch torch/optim/_muon.py, _adjust_lr).
double scale_of(MuonScale scale, const MuonMatrix& matrix) {
  const auto a = double(matrix.rows), b = double(matrix.columns);
  switch (scale) {
    case MuonScale::kMatchRmsAdamW:  // Liu et al. 2025 (Moonlight), equation 4
      return 0.2 * std::sqrt(std::max(a, b));
    case MuonScale::kOriginal:
      return std::sqrt(std::max(1.0, a / b));
    case MuonScale::kSpectral:  // Yang, Simon and Bernstein 2023 (2310.17813); torchtitan calls it spectral_unclamped
      return std::sqrt(a / b);
  }
  TOKAMAK_UNREACHABLE(static_cast<int>(scale));
}

int64_t aligned(int64_t elements) {
  return (elements + UnitLayout::kAlignment - 1) / UnitLayout::kAlignment * UnitLayout::kAlignment;
}

}  // namespace

Muon::Muon(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters, const WeightRules& rules,
           const StateTensor& momentum, MemoryPlan& plan)
    : options_(options.muon),
      seed_(seed),
      parameters_(parameters),
      matrices_(muon_matrices(parameters.table(), rules, parameters.mesh().data().size())) {
  last_round_.assign(parameters.table().units.size(), -1);
  int64_t largest = 0, longest = 0;  // of a matrix, of a shorter side
  for (const MuonMatrix& matrix : matrices_) {
    rounds_.resize(std::max(rounds_.size(), static_cast<size_t>(matrix.round + 1)));
    int64_t& last = last_round_.at(static_cast<size_t>(matrix.unit));
    last = std::max(last, matrix.round);
    largest = std::max(largest, matrix.count());
    longest = std::max(longest, std::min(matrix.rows, matrix.columns));
  }
  add_pieces(momentum);
  int64_t traveling = 0;  // elements of a round's pieces, at most
  for (const Round& round : rounds_) {
    if (round.pieces.empty()) continue;
    traveling = std::max(traveling, round.pieces.back().place + aligned(round.pieces.back().count()));
  }
  std::vector<int64_t> taken(parameters.lend_gradient_buffers().size());  // bytes of each
  const auto place = [&](const char* name, int64_t elements) { return place_buffer(name, elements, taken, plan); };
  for (int64_t s = 0; s < kSets; ++s) {
    x_places_[s] = place("x", largest);
    y_places_[s] = place("y", largest);
    pieces_places_[s] = place("pieces", traveling);
  }
  gram_place_ = place("gram", longest * longest);
  polynomial_place_ = place("polynomial", longest * longest);
  norm_slot_ = plan.add("optimizer/orthogonalise norm", DType::kF64, Shape{1});
}

void Muon::add_pieces(const StateTensor& momentum) {
  const Mesh& mesh = parameters_.mesh();
  const std::vector<OwnWeight> own = own_weights(parameters_);
  for (const MuonMatrix& matrix : matrices_) {
    Round& round = rounds_.at(static_cast<size_t>(matrix.round));
    if (owns(matrix)) {
      round.own = &matrix;
      round.shares = shares_of(matrix);
    }
    const auto found = std::find_if(own.begin(), own.end(), [&](const OwnWeight& piece) {
      return piece.unit == matrix.unit && piece.weight == matrix.weight;
    });
    if (found == own.end()) continue;
    const int64_t place = round.pieces.empty() ? 0 : round.pieces.back().place + aligned(round.pieces.back().count());
    const int64_t in_slice = found->begin - parameters_.slice_begin(matrix.unit);
    round.pieces.push_back({.matrix = &matrix,
                            .offset = found->offset,
                            .begin = found->begin,
                            .end = found->end,
                            .momentum = momentum.units.at(static_cast<size_t>(matrix.unit)).begin + in_slice,
                            .index = found->index,
                            .place = place});
  }
  TOKAMAK_CHECK(mesh.data().size() == mesh.shard().size() * mesh.replicas(), "data group of ", mesh.data().size());
}

Muon::BufferPlace Muon::place_buffer(const char* name, int64_t elements, std::vector<int64_t>& taken,
                                     MemoryPlan& plan) const {
  constexpr int64_t kAlignment = 256;
  const DType dtype = parameters_.compute();
  const int64_t bytes = (elements * size_of(dtype) + kAlignment - 1) / kAlignment * kAlignment;
  const std::vector<Tensor> lent = parameters_.lend_gradient_buffers();
  for (size_t i = 0; i < lent.size(); ++i) {
    if (taken[i] + bytes > lent[i].bytes()) continue;
    const int64_t begin = taken[i];
    taken[i] += bytes;
    return {elements, static_cast<int64_t>(i), begin};
  }
  const std::string what = str("optimizer/orthogonalise ", name);
  return {.elements = elements, .slot = plan.add(what, dtype, Shape{elements}, MemoryKind::kExchanged)};
}

Tensor Muon::tensor_in(const BufferPlace& place, const Arena& arena) const {
  if (place.lent < 0) return arena[place.slot];
  const Tensor buffer = parameters_.lend_gradient_buffers().at(static_cast<size_t>(place.lent));
  return {static_cast<std::byte*>(buffer.data()) + place.begin, parameters_.compute(), Shape{place.elements}};
}

std::vector<Muon::Share> Muon::shares_of(const MuonMatrix& matrix) const {
  const Comm& shard = parameters_.mesh().shard();
  const int64_t slice = parameters_.slice_elements(matrix.unit);
  std::vector<Share> shares;
  for (int peer = 0; peer < shard.size(); ++peer) {
    const int64_t begin = std::max(matrix.begin, peer * slice);
    const int64_t end = std::min(matrix.begin + matrix.count(), (peer + 1) * slice);
    if (begin < end && peer != shard.rank()) shares.push_back({peer, begin - matrix.begin, end - begin});
  }
  return shares;
}

bool Muon::in_own_replica(const MuonMatrix& matrix) const {
  return parameters_.mesh().replica_of(matrix.owner) == parameters_.mesh().replica();
}

bool Muon::owns(const MuonMatrix& matrix) const { return matrix.owner == parameters_.mesh().data().rank(); }

void Muon::commit(const Arena& arena, Tensor momentum) {
  momentum_ = momentum;
  Device& device = *parameters_.backend().device;
  for (int64_t s = 0; s < kSets; ++s) {
    Set& set = sets_[s];
    set.pieces = tensor_in(pieces_places_[s], arena);
    set.x = tensor_in(x_places_[s], arena);
    set.y = tensor_in(y_places_[s], arena);
    for (auto* event : {&set.prepared, &set.arrived, &set.done, &set.back}) *event = device.make_event();
  }
  gram_ = tensor_in(gram_place_, arena);
  polynomial_ = tensor_in(polynomial_place_, arena);
  norm_ = arena[norm_slot_];
}

// An owner's own elements do not travel.
Tensor Muon::direction_of(const Piece& piece, Set& set) const {
  if (owns(*piece.matrix)) return set.x.flat(piece.offset, piece.offset + piece.count());
  return set.pieces.flat(piece.place, piece.place + piece.count());
}

Tensor Muon::result_of(const Piece& piece, Set& set) const {
  if (owns(*piece.matrix)) return set.result.flat().flat(piece.offset, piece.offset + piece.count());
  return set.pieces.flat(piece.place, piece.place + piece.count());
}

void Muon::prepare(int64_t number, Stream& compute, const UpdateStep& step) {
  Set& set = set_of(number);
  for (const Piece& piece : rounds_[static_cast<size_t>(number)].pieces) {
    parameters_.backend().ops->muon_momentum(
        compute, {.grad = parameters_.gradients().flat(piece.begin, piece.end),
                  .momentum = momentum_.flat(piece.momentum, piece.momentum + piece.count()),
                  .direction = direction_of(piece, set),
                  .control = step.control,
                  .mu = options_.momentum,
                  .nesterov = options_.nesterov ? Nesterov::kYes : Nesterov::kNo,
                  .rounding = {.seed = seed_, .first = piece.index, .step = step.t}});
  }
  compute.record(*set.prepared);
}

void Muon::send_to_owners(int64_t number, Stream& compute) {
  Set& set = set_of(number);
  Comm& shard = parameters_.mesh().shard();
  Stream& stream = parameters_.exchange_stream(compute);
  stream.wait(*set.prepared);
  if (shard.size() > 1) {
    const Round& round = rounds_[static_cast<size_t>(number)];
    std::vector<Comm::Transfer> sends, receives;
    for (const Piece& piece : round.pieces) {
      if (owns(*piece.matrix) || !in_own_replica(*piece.matrix)) continue;
      sends.push_back({parameters_.mesh().shard_rank_of(piece.matrix->owner), direction_of(piece, set)});
    }
    for (const Share& share : round.shares) {
      receives.push_back({share.peer, set.x.flat(share.offset, share.offset + share.count)});
    }
    shard.exchange(stream, sends, receives);
  }
  stream.record(*set.arrived);
}

void Muon::orthogonalise(int64_t number, Stream& compute) {
  Set& set = set_of(number);
  compute.wait(*set.arrived);
  if (const MuonMatrix* own = rounds_[static_cast<size_t>(number)].own; own != nullptr) {
    const Shape shape = {own->rows, own->columns}, square = gram_shape(shape);
    set.result = tokamak::orthogonalise(*parameters_.backend().ops, compute,
                                        {.x = set.x.flat(0, own->count()).reshape(shape),
                                         .other = set.y.flat(0, own->count()).reshape(shape),
                                         .gram = gram_.flat(0, square.count()).reshape(square),
                                         .polynomial = polynomial_.flat(0, square.count()).reshape(square),
                                         .norm = norm_,
                                         .coefficients = options_.coefficients,
                                         .steps = options_.steps});
  }
  compute.record(*set.done);
}

void Muon::send_back(int64_t number, Stream& compute) {
  Set& set = set_of(number);
  const Round& round = rounds_[static_cast<size_t>(number)];
  const Mesh& mesh = parameters_.mesh();
  Stream& stream = parameters_.exchange_stream(compute);
  stream.wait(*set.done);
  std::vector<Comm::Transfer> sends, receives;
  if (mesh.shard().size() > 1) {
    for (const Share& share : round.shares) {
      sends.push_back({share.peer, set.result.flat().flat(share.offset, share.offset + share.count)});
    }
    for (const Piece& piece : round.pieces) {
      if (owns(*piece.matrix) || !in_own_replica(*piece.matrix)) continue;
      receives.push_back({mesh.shard_rank_of(piece.matrix->owner), result_of(piece, set)});
    }
    mesh.shard().exchange(stream, sends, receives);
  }
  if (mesh.replicas() > 1) {
    sends.clear();
    receives.clear();
    for (const Piece& piece : round.pieces) {
      if (!in_own_replica(*piece.matrix)) {
        receives.push_back({mesh.replica_of(piece.matrix->owner), result_of(piece, set)});
        continue;
      }
      for (int replica = 0; replica < mesh.replicas(); ++replica) {
        if (replica != mesh.replica()) sends.push_back({replica, result_of(piece, set)});
      }
    }
    mesh.replicate().exchange(stream, sends, receives);
  }
  stream.record(*set.back);
}

void Muon::apply(int64_t number, Stream& compute, const UpdateStep& step) {
  Set& set = set_of(number);
  compute.wait(*set.back);
  const bool copies = parameters_.compute() != DType::kF32;
  for (const Piece& piece : rounds_[static_cast<size_t>(number)].pieces) {
    const MuonMatrix& matrix = *piece.matrix;
    const auto own = [&](const Tensor& shard) { return shard.flat(piece.begin, piece.end); };
    const double lr = step.lr * matrix.lr_scale;
    parameters_.backend().ops->muon_update(compute, {.direction = result_of(piece, set),
                                                     .master = own(parameters_.master()),
                                                     .weights = copies ? own(parameters_.weights()) : Tensor(),
                                                     .control = step.control,
                                                     .updates = step.updates ? own(step.updates) : Tensor(),
                                                     .rate = lr * scale_of(options_.scale, matrix),
                                                     .decay = lr * matrix.weight_decay});
  }
}

void Muon::finish(const UpdatePart& part, Stream& compute, const UpdateStep& step) {
  int64_t rounds = 0;  // that this part needs
  for (size_t u = 0; u < last_round_.size(); ++u) {
    const auto unit = static_cast<int64_t>(u);
    if (part.unit == UpdatePart::kAllUnits || part.unit == unit) rounds = std::max(rounds, last_round_[u] + 1);
  }
  const int64_t last = std::ssize(rounds_) - 1;
  for (; applied_ < rounds; ++applied_) {
    for (; computed_ <= std::min(applied_ + 1, last); ++computed_) {
      for (; started_ <= std::min(computed_ + 1, last); ++started_) {
        prepare(started_, compute, step);
        send_to_owners(started_, compute);
      }
      orthogonalise(computed_, compute);
      send_back(computed_, compute);
    }
    apply(applied_, compute, step);
  }
}

void Muon::begin() { started_ = computed_ = applied_ = 0; }

}  // namespace tokamak
