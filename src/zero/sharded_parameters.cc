#include "zero/sharded_parameters.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tokamak {

namespace {

// Whether units of different shapes share buffers: their padding lies in different places. If a layer is several units,
// these share buffers with embedding and head, too (unit_buffers.h).
bool shapes_share_buffers(const ParamTable& table) {
  if (table.units_per_layer > 1) return true;
  const Unit* first = nullptr;
  const auto same_size = [](const Matrix& a, const Matrix& b) { return a.count() == b.count(); };
  for (const Unit& unit : table.units) {
    if (unit.kind != UnitKind::kLayer) continue;
    if (first == nullptr) first = &unit;
    if (!std::equal(first->matrices.begin(), first->matrices.end(), unit.matrices.begin(), unit.matrices.end(),
                    same_size)) {
      return true;
    }
  }
  return false;
}

}  // namespace

ShardedParameters::ShardedParameters(const ParamTable& table, const Mesh& mesh, Backend& backend,
                                     const ShardingOptions& options, MemoryPlan& plan)
    : table_(table),
      shapes_share_buffers_(shapes_share_buffers(table)),
      mesh_(mesh),
      backend_(backend),
      options_(options) {
  const Comm& shard = mesh_.shard();
  std::vector<int64_t> padded;
  int64_t largest_slice = 0;
  for (const Unit& unit : table.units) {
    UnitLayout layout(unit);
    const int64_t slice = layout.slice(shard.size(), mesh_.replicas());
    padded.push_back(slice * shard.size());
    units_.push_back({.layout = std::move(layout), .begin = shard_elements_, .elements = slice});
    shard_elements_ += slice;
    largest_slice = std::max(largest_slice, slice);
  }
  master_ = {nullptr, DType::kF32, Shape{shard_elements_}};
  master_slot_ = plan.add("parameters/master", master_.dtype(), master_.shape());
  if (options.compute != DType::kF32) {
    weights_slot_ =
        plan.add("parameters/compute copy", options.compute, Shape{shard_elements_}, MemoryKind::kExchanged);
  }
  if (options.gradients) {
    grad_slot_ = plan.add("gradients/slices", DType::kF32, Shape{shard_elements_}, MemoryKind::kExchanged);
  }
  const ShardingPolicy& policy = options.policy;
  int64_t scratch = 0;
  if (!whole()) {
    weight_buffers_.emplace("gathered weights", table, padded, policy.kept_layers, options.compute, plan);
    if (!options.gradients) return;
    gradient_buffers_.emplace("gradients", table, padded, policy.reduce_once ? ShardingPolicy::kAllLayers : 0,
                              DType::kF32, plan);
    if (!options_.policy.reduce_once) {
      staging_slot_ = plan.add("gradients/reduced", DType::kF32, Shape{largest_slice}, MemoryKind::kExchanged);
    }
    scratch = shard.scratch_elements(largest_slice, options.reduce_dtype);
  }
  if (options.gradients && mesh_.replicas() > 1) {
    const int64_t part = largest_slice / mesh_.replicas();
    scratch = std::max(scratch, mesh_.replicate().scratch_elements(part, options.reduce_dtype));
  }
  if (scratch == 0) return;
  scratch_slot_ = plan.add("gradients/communication", options.reduce_dtype, Shape{scratch}, MemoryKind::kExchanged);
}

void ShardedParameters::commit(const Arena& arena) {
  Device& device = *backend_.device;
  master_ = arena[master_slot_];
  weights_ = options_.compute == DType::kF32 ? master_ : arena[weights_slot_];
  if (options_.gradients) grad_ = arena[grad_slot_];
  if (staging_slot_) staging_ = arena[*staging_slot_];
  if (scratch_slot_) scratch_ = arena[*scratch_slot_];
  // Higher priority than compute: a collective uses few SMs, and other ranks wait for it.
  if (options_.policy.overlap) {
    gather_stream_ = device.make_stream({.name = "gather", .priority = StreamPriority::kHigh});
    reduce_stream_ = device.make_stream({.name = "reduce", .priority = StreamPriority::kHigh});
  }
  if (whole()) {
    for (int64_t u = 0; u < std::ssize(units_); ++u) view(slice_of(weights_, u), u, at(u).weights);
  }
  compute_done_ = device.make_event();
  gather_done_ = device.make_event();
  reduce_done_ = device.make_event();
  if (mesh_.data().size() == 1) return;
  // Memory is registered with one group, the one that moves most of it.
  (whole() ? mesh_.replicate() : mesh_.shard()).register_memory();
  if (weight_buffers_) weight_buffers_->commit(arena, device);
  if (gradient_buffers_) gradient_buffers_->commit(arena, device);
}

void ShardedParameters::initialize(uint64_t seed, Stream& stream) {
  backend_.ops->fill(stream, {.x = master_, .value = 0});
  for (int64_t u = 0; u < std::ssize(units_); ++u) {
    const Tensor slice = slice_of(master_, u);
    const int64_t slice_first = mesh_.shard().rank() * slice.count();  // index into the unit's flat elements
    for (const FlatParam& flat : flat_params(unit_at(u))) {
      const int64_t begin = std::max(flat.begin, slice_first);
      const int64_t end = std::min(flat.end, slice_first + slice.count());
      if (begin >= end) continue;
      backend_.ops->random_normal(stream, {.x = slice.flat(begin - slice_first, end - slice_first),
                                           .seed = seed,
                                           .name = flat.param->name,
                                           .first = begin - flat.begin,
                                           .mean = flat.param->init_mean,
                                           .std = flat.param->init_std});
    }
  }
  masters_changed(stream);
}

void ShardedParameters::masters_changed(Stream& stream) {
  wait_gathered(stream);  // gathers read the weights that are written here
  if (options_.compute != DType::kF32) backend_.ops->cast(stream, {.src = master_, .dst = weights_});
  weights_changed();
}

void ShardedParameters::substitute_masters(Tensor values, Stream& stream) {
  wait_gathered(stream);
  if (options_.compute == DType::kF32) backend_.ops->cast(stream, {.src = master_, .dst = grad_});
  backend_.ops->cast(stream, {.src = values, .dst = weights_});
  weights_changed();
}

void ShardedParameters::restore_masters(Stream& stream) {
  wait_gathered(stream);
  if (options_.compute == DType::kF32) backend_.ops->cast(stream, {.src = grad_, .dst = master_});
  masters_changed(stream);
}

void ShardedParameters::weights_changed() {
  if (weight_buffers_) weight_buffers_->forget_contents();
}

std::vector<UpdatePart> ShardedParameters::update_parts() const {
  if (whole() || !options_.policy.overlap) return {{0, shard_elements_, UpdatePart::kAllUnits}};
  std::vector<UpdatePart> parts;
  for (const bool norms : {true, false}) {  // every layer reads norm weights, so their unit comes first
    for (int64_t u = 0; u < std::ssize(units_); ++u) {
      if ((unit_at(u).kind == UnitKind::kNorms) != norms) continue;
      parts.push_back({slice_begin(u), slice_begin(u) + slice_elements(u), u});
    }
  }
  return parts;
}

std::vector<Tensor> ShardedParameters::lend_gradient_buffers() {
  if (!gradient_buffers_) return {};
  shapes_share_buffers_ = true;  // the optimizer, too, writes between matrices
  return gradient_buffers_->tensors();
}

void ShardedParameters::begin_update(Stream& compute) {
  wait_gathered(compute);  // a prefetch may be under way
  weights_changed();
}

void ShardedParameters::updated(const UpdatePart& part, Stream& compute) {
  if (part.unit == UpdatePart::kAllUnits) return;
  if (weight_buffers_->has_empty(part.unit)) gather(part.unit, compute);
}

void ShardedParameters::wait_gathered(Stream& compute) {
  if (whole()) return;
  gathers(compute).record(*gather_done_);
  compute.wait(*gather_done_);
}

void ShardedParameters::gather(int64_t unit, Stream& compute, int64_t keep) {
  UnitBuffers::Buffer& buffer = weight_buffers_->take(unit, keep);
  // Waits for `compute`, where the optimizer wrote the slice and the last user read the buffer.
  Stream& stream = gathers(compute);
  compute.record(*compute_done_);
  stream.wait(*compute_done_);
  Comm& shard = mesh_.shard();
  shard.all_gather(stream, slice_of(weights_, unit), buffer.tensor.flat(0, slice_elements(unit) * shard.size()));
  stream.record(*buffer.filled);
  view(buffer.tensor, unit, at(unit).weights);
}

void ShardedParameters::prefetch(int64_t unit, Stream& compute, int64_t keep) {
  if (whole() || weight_buffers_->find(unit) != nullptr) return;
  if (weight_buffers_->available(unit, keep) != nullptr) gather(unit, compute, keep);
}

const std::vector<Tensor>& ShardedParameters::acquire(int64_t unit, Stream& compute) {
  if (whole()) return at(unit).weights;
  if (weight_buffers_->find(unit) == nullptr) gather(unit, compute);
  UnitBuffers::Buffer& buffer = weight_buffers_->of(unit);
  ++buffer.users;
  weight_buffers_->used(buffer);
  compute.wait(*buffer.filled);
  return at(unit).weights;
}

void ShardedParameters::release(int64_t unit) {
  if (whole()) return;
  UnitBuffers::Buffer& buffer = weight_buffers_->of(unit);
  TOKAMAK_CHECK(buffer.users > 0, "unit ", unit, " released without being acquired");
  --buffer.users;
}

void ShardedParameters::begin_step() {
  set_gradient_mode(Write::kOverwrite);
  for (Slice& slice : units_) slice.complete = false;
  last_ = true;
}

void ShardedParameters::set_gradient_mode(Write write) {
  for (Slice& slice : units_) slice.written = write == Write::kAccumulate;
}

ShardedParameters::Gradient ShardedParameters::gradient(int64_t unit, Stream& compute) {
  Slice& slice = at(unit);
  if (whole()) {
    // The slice is the whole gradient: GEMMs accumulate directly into it.
    const Write write = std::exchange(slice.written, true) ? Write::kAccumulate : Write::kOverwrite;
    view(slice_of(grad_, unit), unit, slice.gradients);
    return {slice.gradients, write};
  }
  if (UnitBuffers::Buffer* const begun = gradient_buffers_->find(unit); begun != nullptr && begun->users > 0) {
    return {slice.gradients, Write::kAccumulate};
  }
  UnitBuffers::Buffer& buffer = gradient_buffers_->take(unit);
  buffer.users = 1;
  compute.wait(*buffer.drained);  // until its previous contents are reduced
  if (shapes_share_buffers_) clear_padding(buffer.tensor, unit, compute);
  view(buffer.tensor, unit, slice.gradients);
  return {slice.gradients, Write::kOverwrite};
}

// Units of other shapes have written into the gaps between this unit's matrices, which the gradient norm includes.
void ShardedParameters::clear_padding(Tensor whole, int64_t unit, Stream& compute) {
  const std::vector<int64_t>& offsets = at(unit).layout.offsets;
  const std::vector<Matrix>& matrices = unit_at(unit).matrices;
  for (size_t m = 0; m < matrices.size(); ++m) {
    const int64_t begin = offsets[m] + matrices[m].count();
    const int64_t end = m + 1 < matrices.size() ? offsets[m + 1] : slice_elements(unit) * mesh_.shard().size();
    if (begin < end) backend_.ops->fill(compute, {.x = whole.flat(begin, end), .value = 0});
  }
}

void ShardedParameters::reduce(int64_t unit, Stream& compute) {
  const bool in_shard_group = !whole() && (last_ || !options_.policy.reduce_once);
  const bool over_replicas = mesh_.replicas() > 1 && last_;
  if (!in_shard_group && !over_replicas) return;
  TOKAMAK_CHECK(!at(unit).complete, "unit ", unit, " is reduced after the last micro-batch");
  if (contributions_) {
    backend_.ops->checksum(compute, {.x = whole_gradient(unit), .sum = contributions_.rows(unit, unit + 1).flat()});
  }
  Stream& stream = reductions(compute);
  compute.record(*compute_done_);
  stream.wait(*compute_done_);
  if (in_shard_group) reduce_in_shard_group(unit, stream);
  if (over_replicas) reduce_over_replicas(unit, stream);
}

Tensor ShardedParameters::whole_gradient(int64_t unit) {
  if (whole()) return slice_of(grad_, unit);
  UnitBuffers::Buffer& buffer = gradient_buffers_->of(unit);
  TOKAMAK_CHECK(buffer.users == 1, "gradient of unit ", unit, " reduced without being written");
  return buffer.tensor.flat(0, slice_elements(unit) * mesh_.shard().size());
}

void ShardedParameters::reduce_in_shard_group(int64_t unit, Stream& stream) {
  const Tensor full = whole_gradient(unit);
  UnitBuffers::Buffer& buffer = gradient_buffers_->of(unit);
  Comm& shard = mesh_.shard();
  const Tensor slice = slice_of(grad_, unit);
  const bool add = std::exchange(at(unit).written, true);
  TOKAMAK_CHECK(!add || staging_slot_, "unit ", unit, " is reduced twice in a step");
  const Tensor sum = add ? staging_.flat(0, slice.count()) : slice;
  shard.reduce_scatter(stream, {.full = full, .slice = sum, .dtype = options_.reduce_dtype, .scratch = scratch_});
  if (add) backend_.ops->cast(stream, {.src = sum, .dst = slice, .write = Write::kAccumulate});
  stream.record(*buffer.drained);
  buffer.users = 0;
}

// Sums the slice over the replicas, in place: each replica sums one part and gathers the other parts.
void ShardedParameters::reduce_over_replicas(int64_t unit, Stream& stream) {
  Comm& replicate = mesh_.replicate();
  const Tensor slice = slice_of(grad_, unit), own = distinct(slice);
  replicate.reduce_scatter(stream, {.full = slice, .slice = own, .dtype = options_.reduce_dtype, .scratch = scratch_});
  replicate.all_gather(stream, own, slice);
  at(unit).complete = true;
}

void ShardedParameters::wait_reduced(Stream& compute) {
  reductions(compute).record(*reduce_done_);
  compute.wait(*reduce_done_);
}

Tensor ShardedParameters::distinct(Tensor slice) const {
  const int64_t part = slice.count() / mesh_.replicas(), begin = part * mesh_.replica();
  return slice.flat(begin, begin + part);
}

Tensor ShardedParameters::slice_of(Tensor shard, int64_t unit) const {
  const int64_t begin = slice_begin(unit);
  return shard.flat(begin, begin + slice_elements(unit));
}

void ShardedParameters::view(Tensor whole, int64_t unit, std::vector<Tensor>& matrices) const {
  matrices.clear();
  auto begin = at(unit).layout.offsets.begin();
  for (const Matrix& matrix : unit_at(unit).matrices) {
    matrices.push_back(whole.flat(*begin, *begin + matrix.count()).reshape(matrix.shape()));
    ++begin;
  }
}

}  // namespace tokamak
