// The forward and backward pass over the units, with the order of acquire, prefetch, release and reduce. A layer's
// operations are in its parts (attention_part.cc, mlp_part.cc).
#include "model/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/bf16.h"
#include "base/error.h"
#include "model/activation_names.h"
#include "model/rope_table.h"
#include "zero/unit_pass.h"

namespace tokamak {

namespace {

// The table lists embedding and layers in this order.
std::vector<int64_t> forward_order(const WeightIndex& index, const LayerTable& layers, const ParamTable& table) {
  std::vector<int64_t> units(1 + layers.layers() * table.units_per_layer);
  std::iota(units.begin(), units.end(), index.embedding());
  units.push_back(index.head());
  return units;
}

// A layer uses the units that its recomputation reads, then all its units in reverse. No unit comes twice in a row.
std::vector<int64_t> backward_order(const WeightIndex& index, const LayerTable& layers,
                                    const ActivationPlan& activations) {
  std::vector<int64_t> units;
  for (int64_t l = layers.layers() - 1; l >= 0; --l) {
    const LayerTable::Kind& kind = layers.kind(l);
    std::vector<int64_t> reverse;
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      const std::vector<KeptRow> kept = kind.parts[part]->kept();
      for (int piece = 0; piece < std::ssize(kind.parts[part]->pieces()); ++piece) {
        const bool recomputes = std::any_of(kept.begin(), kept.end(), [&](const KeptRow& row) {
          return row.spares == KeptRow::Spares::kForward && row.piece == piece &&
                 activations.recomputed(l)[kind.kept_index(part, row.id)];
        });
        if (recomputes) units.push_back(index.layer(l, part, piece));
        reverse.push_back(index.layer(l, part, piece));
      }
    }
    units.insert(units.end(), reverse.rbegin(), reverse.rend());
  }
  units.push_back(index.embedding());  // gathered for the next micro-batch
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, ShardedParameters& parameters, const TransformerOptions& options,
                         MemoryPlan& plan)
    : config_(config),
      layers_(config),
      attended_(layers_),
      index_(layers_, parameters.table()),
      heads_{config.num_attention_heads, config.kv_heads(), config.head_size()},
      parameters_(parameters),
      ops_(*parameters.backend().ops),
      device_(*parameters.backend().device),
      options_(options),
      inputs_(options.max_tokens, plan),
      activations_(layers_, config.hidden_size, options.max_tokens, ops_.rows_behind_attention(), options.compute,
                   options.passes, options.kept, plan) {
  forward_order_ = forward_order(index_, layers_, parameters.table());
  backward_order_ = backward_order(index_, layers_, activations_);
  rope_slot_ = plan.add("rope table", DType::kF32, Shape{options.max_length, heads_.head_dim});
  if (config.rope_local_base_freq > 0) {
    rope_local_slot_ = plan.add("rope table, local", DType::kF32, Shape{options.max_length, heads_.head_dim});
  }
  Workload workload{.tokens = options.max_tokens,
                    .hidden = config.hidden_size,
                    .vocab = config.vocab_size,
                    .max_length = options.max_length,
                    .compute = options.compute,
                    .cached_tokens = options.cached_sequences,
                    .windows = {}};
  for (const LayerTable::Kind& kind : layers_.kinds()) {
    for (const auto& part : kind.parts) part->widen(workload);
  }
  if (const int64_t entries = ops_.document_table_entries(workload); entries > 0) {
    tables_slot_ = plan.add("batch/document tables", DType::kI32, Shape{DocumentTables::kRows, entries});
  }
  workspace_shape_ = Shape{(ops_.workspace_bytes(workload) + 3) / 4};
  workspace_slot_ = plan.add("workspace", DType::kF32, workspace_shape_);
}

void Transformer::commit(const Arena& arena, Stream& compute) {
  activations_.commit(arena);
  inputs_.commit(arena, device_);
  if (options_.graphs != CudaGraphs::kOff && device_.can_record() && parameters_.mesh().world().size() == 1) {
    graphs_.emplace(device_, options_.graphs);
  }
  rope_ = arena[rope_slot_];
  if (tables_slot_) tables_ = arena[*tables_slot_];
  ops_.bind_workspace(arena[workspace_slot_]);
  const auto fill = [&](const ModelConfig& config, Tensor rope) {
    const std::vector<float> table = make_rope_table(config, options_.max_length, options_.max_length);
    device_.copy_to_device(compute, table.data(), rope);
    compute.synchronize();
  };
  fill(config_, rope_);
  if (rope_local_slot_) {
    rope_local_ = arena[*rope_local_slot_];
    fill(config_.with_local_rope(), rope_local_);
  }
}

void Transformer::forward_backward(Stream& compute, const TokenBatch& batch, Tensor sums) {
  if (!graphs_ || device_.shows_operations() || watcher() != nullptr)
    return run_units(compute, inputs_.upload(compute, batch), sums);
  TokenBatch roomy = batch;
  cu_seqlens_.assign(batch.cu_seqlens.begin(), batch.cu_seqlens.end());
  const auto documents = std::ssize(cu_seqlens_) - 1;
  const int64_t room = room_for_documents(documents, std::ssize(batch.tokens), options_.max_length);
  cu_seqlens_.resize(static_cast<size_t>(room + 1), cu_seqlens_.back());
  roomy.cu_seqlens = cu_seqlens_;
  const DeviceBatch in = inputs_.upload(compute, roomy);  // on its own stream, so not part of the graph
  const PassKey key{in.tokens.data(), sums.data(), in.count(), room, parameters_.gradient_mode()};
  graphs_->run(compute, key, [&] {
    parameters_.set_gradient_mode(key.gradients);
    run_units(compute, in, sums);
  });
  parameters_.set_gradient_mode(Write::kAccumulate);  // a replay does not set it
}

void Transformer::run_units(Stream& compute, const DeviceBatch& in, Tensor sums) {
  const Activations& a = forward(compute, in, watcher());

  const PassScope backward(device_, {"backward"});
  const Norms norms = parameters_.acquire(index_.norms(), compute);
  const Norms dnorms = norm_gradients(compute);
  backward_head(compute, in, a, sums, dnorms);
  // The head has overwritten the embedding's buffer. The embedding is gathered again for its norm's gradient, and for
  // the next micro-batch unless the weights change first.
  const std::span order(backward_order_);
  const bool ends_at_layers = parameters_.last_microbatch() && !config_.embedding_norm;
  UnitPass units(parameters_, compute, ends_at_layers ? order.first(order.size() - 1) : order);
  const PassInputs pass = pass_inputs(compute, in, a);
  for (int64_t l = layers_.layers() - 1; l >= 0; --l) {
    backward_layer(pass, a, l, LayerWeights(index_, l, units, norms, dnorms));
  }
  backward_embedding(compute, in, a, norms, dnorms);
  parameters_.release(index_.norms());
}

// sqrt(C), rounded to the compute dtype as Gemma's was in training (transformers' Gemma3TextScaledWordEmbedding).
float Transformer::embedding_scale() const {
  if (!config_.scale_embeddings) return 1;
  const auto scale = static_cast<float>(std::sqrt(double(config_.hidden_size)));
  return options_.compute == DType::kBF16 ? to_float(from_float<bf16>(scale)) : scale;
}

PassInputs Transformer::pass_inputs(Stream& compute, const DeviceBatch& in, const Activations& a,
                                    ActivationStatistics* watcher) const {
  return {compute, ops_, in, rope_, rope_local_, tables_of(in), options_.max_length, a.dx, watcher};
}

PartPass Transformer::part_pass(const PassInputs& in, PartPass::Mode mode, const Activations& a, int64_t l, size_t part,
                                LayerWeights& weights) const {
  const Activations::Layer& layer = a.layers[l];
  return {.in = in,
          .mode = mode,
          .layer = l,
          .part = part,
          .x = part == 0 ? layer.x : layer.outputs[part - 1],
          .out = layer.outputs[part],
          .activations = layer.parts[part],
          .kept_index = layers_.kind(l).kept[part],
          .recomputed = activations_.recomputed(l),
          .weights = weights};
}

void Transformer::forward_layer(const PassInputs& in, const Activations& a, int64_t l, LayerWeights weights) {
  const PassScope forward(device_, {"forward", l});
  const auto& parts = layers_.kind(l).parts;
  for (size_t part = 0; part < parts.size(); ++part) {
    const PartPass pass = part_pass(in, PartPass::Mode::kForward, a, l, part, weights);
    parts[part]->forward(pass);
    if (in.watcher == nullptr) continue;
    for (const WatchedRow& row : parts[part]->watched()) {
      in.watcher->see(in.compute, activation_name(l, row.name), pass.a(row.id));
    }
  }
  if (in.watcher != nullptr) {
    in.watcher->see(in.compute, activation_name(l, activation::kOutput), a.layers[l].outputs.back());
  }
}

void Transformer::backward_layer(const PassInputs& in, const Activations& a, int64_t l, LayerWeights weights) {
  const auto& parts = layers_.kind(l).parts;
  for (size_t part = 0; part < parts.size(); ++part) {
    const PassScope recomputation(device_, {"recomputation", l});
    parts[part]->forward(part_pass(in, PartPass::Mode::kRecompute, a, l, part, weights));
  }
  const PassScope backward(device_, {"backward", l});
  for (size_t part = parts.size(); part-- > 0;) {
    parts[part]->backward(part_pass(in, PartPass::Mode::kBackward, a, l, part, weights));
  }
}

Tensor Transformer::tables_of(const DeviceBatch& in) const {
  const int64_t documents = in.cu_seqlens.count() - 1;
  const bool from_cache = in.cached != nullptr && in.cached->max_cached > 0;
  const bool equal = documents * options_.max_length == in.count();
  return !tables_ || from_cache || equal || documents >= tables_.dim(1) ? Tensor() : tables_;
}

TokenScores Transformer::evaluate(Stream& compute, const TokenBatch& batch, Tensor sums, const CachedInputs* cached) {
  TOKAMAK_CHECK(batch.rows.empty() || batch.rows.size() == batch.targets.size(), batch.rows.size(), " rows for ",
                batch.targets.size(), " targets");
  DeviceBatch in = inputs_.upload(compute, batch);
  in.cached = cached;
  const Tensor hidden = forward(compute, in).norm;
  const Activations& a = activations_.first(in.targets.count());  // of the targets from here on
  const Tensor weight = parameters_.acquire(index_.head(), compute)[0];
  LinearCrossEntropy head = head_arguments(in, a, weight, sums);
  head.hidden = hidden;
  if (!batch.rows.empty()) {
    head.hidden = a.layers[0].x;  // free: the pass is over
    ops_.embedding(compute, {.ids = in.rows, .table = hidden, .out = head.hidden});
  }
  head.greedy = a.rstd_final;  // its memory: no backward pass follows, which would need the norm's factors
  ops_.linear_cross_entropy(compute, head);
  parameters_.release(index_.head());
  return {.loss = head.token_loss, .greedy = head.greedy};
}

void Transformer::logits(Stream& compute, const TokenBatch& batch, int64_t first_row, Tensor logits) {
  const DeviceBatch in = inputs_.upload(compute, batch);
  const Activations& a = forward(compute, in);
  head(compute, a.norm.rows(first_row, first_row + logits.dim(0)), logits);
}

Tensor Transformer::forward_cached(Stream& compute, const TokenBatch& batch, const CachedInputs& cached) {
  DeviceBatch in = inputs_.upload(compute, batch);
  in.cached = &cached;
  const Activations& a = forward(compute, in);
  return a.norm;
}

void Transformer::head(Stream& compute, Tensor hidden, Tensor logits) {
  const Tensor weight = parameters_.acquire(index_.head(), compute)[0];
  project(compute, {.a = hidden, .b = weight, .c = logits, .trans_b = Transpose::kYes, .label = "head"});
  parameters_.release(index_.head());
}

void Transformer::project(Stream& compute, const Gemm& head) {
  ops_.gemm(compute, head);
  if (config_.final_logit_softcapping > 0) {
    ops_.soft_cap(compute, {.x = head.c.flat(0, head.c.count()), .cap = final_cap()});
  }
}

void Transformer::finish_gradients(Stream& compute) {
  const PassScope backward(device_, {"backward"});
  parameters_.reduce(index_.norms(), compute);
  parameters_.wait_reduced(compute);
}

const Activations& Transformer::forward(Stream& compute, const DeviceBatch& in, ActivationStatistics* watcher) {
  const PassScope forward(device_, {"forward"});
  const Activations& a = activations_.first(in.count());
  const Norms norms = parameters_.acquire(index_.norms(), compute);
  UnitPass units(parameters_, compute, forward_order_);
  embed(compute, in, a, units.use(index_.embedding())[0], norms);
  if (watcher != nullptr) watcher->see(compute, activation::kEmbedding, a.layers[0].x);
  if (const Tensor tables = tables_of(in)) {
    ops_.document_tables(compute, {.cu_seqlens = in.cu_seqlens, .tables = tables, .heads = heads_});
  }

  const PassInputs pass = pass_inputs(compute, in, a, watcher);
  for (int64_t l = 0; l < layers_.layers(); ++l) forward_layer(pass, a, l, LayerWeights(index_, l, units, norms));
  units.end();

  ops_.rmsnorm(compute, {.x = a.last,
                         .weight = index_.final_norm(norms),
                         .y = a.norm,
                         .rstd = a.rstd_final,
                         .eps = static_cast<float>(config_.rms_norm_eps),
                         .offset = config_.norm_offset()});
  if (watcher != nullptr) watcher->see(compute, activation::kNorm, a.norm);
  parameters_.release(index_.norms());
  return a;
}

void Transformer::embed(Stream& compute, const DeviceBatch& in, const Activations& a, Tensor table, Norms norms) {
  const Tensor x = a.layers[0].x, embedded = config_.embedding_norm ? a.norm : x;
  ops_.embedding(compute, {.ids = in.tokens, .table = table, .out = embedded, .scale = embedding_scale()});
  if (!config_.embedding_norm) return;
  ops_.rmsnorm(compute, {.x = embedded,
                         .weight = index_.embedding_norm(norms),
                         .y = x,
                         .rstd = a.rstd_final,
                         .eps = static_cast<float>(config_.rms_norm_eps),
                         .offset = config_.norm_offset()});
}

LinearCrossEntropy Transformer::head_arguments(const DeviceBatch& in, const Activations& a, Tensor weight,
                                               Tensor sums) const {
  return {.hidden = a.norm,
          .weight = weight,
          .targets = in.targets,
          .token_loss = a.token_loss,
          .sums = sums,
          .z_weight = static_cast<float>(options_.z_loss),
          .cap = final_cap()};
}

void Transformer::backward_head(Stream& compute, const DeviceBatch& in, const Activations& a, Tensor sums,
                                Norms dnorms) {
  const int64_t unit = index_.head();
  const Tensor weight = parameters_.acquire(unit, compute)[0];
  const int64_t measured = std::min(in.count(), ActivationStatistics::kLogitRows);
  if (const Tensor logits = watcher() != nullptr ? watcher()->logits(measured) : Tensor()) {
    project(compute, {.a = a.norm.rows(0, measured),
                      .b = weight,
                      .c = logits,
                      .trans_b = Transpose::kYes,
                      .label = "head",
                      .choice = AlgorithmChoice::kFixed});
    watcher()->see(compute, activation::kLogits, logits);
  }
  const ShardedParameters::Gradient g = parameters_.gradient(unit, compute);
  LinearCrossEntropy args = head_arguments(in, a, weight, sums);
  args.dhidden = a.dx;
  args.dweight = g.matrices[0];
  args.write = g.write;
  ops_.linear_cross_entropy(compute, args);
  parameters_.release(unit);
  if (!index_.tied()) parameters_.reduce(unit, compute);  // tied: the embedding still adds its gradient

  const Norms norms = parameters_.acquire(index_.norms(), compute);
  ops_.rmsnorm_backward(compute, {.dy = a.dx,
                                  .x = a.last,
                                  .weight = index_.final_norm(norms),
                                  .rstd = a.rstd_final,
                                  .dx = a.dx,
                                  .dweight = index_.final_norm(dnorms),
                                  .offset = config_.norm_offset()});
  parameters_.release(index_.norms());
}

void Transformer::backward_embedding(Stream& compute, const DeviceBatch& in, const Activations& a, Norms norms,
                                     Norms dnorms) {
  if (config_.embedding_norm) {  // its input and rstd are computed again; the first layer needs x no more
    embed(compute, in, a, parameters_.acquire(index_.embedding(), compute)[0], norms);
    parameters_.release(index_.embedding());
    ops_.rmsnorm_backward(compute, {.dy = a.dx,
                                    .x = a.norm,
                                    .weight = index_.embedding_norm(norms),
                                    .rstd = a.rstd_final,
                                    .dx = a.dx,
                                    .dweight = index_.embedding_norm(dnorms),
                                    .offset = config_.norm_offset()});
  }
  const ShardedParameters::Gradient g = parameters_.gradient(index_.embedding(), compute);
  if (g.write == Write::kOverwrite) ops_.fill(compute, {.x = g.matrices[0], .value = 0});
  ops_.embedding_backward(compute,
                          {.ids = in.tokens, .dout = a.dx, .dtable = g.matrices[0], .scale = embedding_scale()});
  parameters_.reduce(index_.embedding(), compute);
}

Transformer::Norms Transformer::norm_gradients(Stream& compute) {
  const ShardedParameters::Gradient g = parameters_.gradient(index_.norms(), compute);
  if (g.write == Write::kOverwrite) {
    for (const Tensor& dweight : g.matrices) ops_.fill(compute, {.x = dweight, .value = 0});
  }
  return g.matrices;
}

}  // namespace tokamak
