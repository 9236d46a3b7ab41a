// Sharded parameters of a small table, and observers of their collectives. For tests of several ranks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/observer.h"
#include "base/strings.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

inline Param matrix(const std::string& name, int64_t rows, int64_t columns) {
  return {name, Shape{rows, columns}, 0, 0.5};
}

// Three layers, so that they must share two buffers. No size is a multiple of another.
inline ParamTable small_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embedding", {matrix("embedding", 31, 7)}}}});
  for (int l = 0; l < 3; ++l) {
    const std::string name = str("layer.", l);
    table.units.push_back(
        {UnitKind::kLayer,
         name,
         {{"qkv", {matrix(name + ".q", 5, 7), matrix(name + ".k", 3, 7)}}, {"o", {matrix(name + ".o", 7, 5)}}}});
  }
  table.units.push_back({UnitKind::kNorms, "norms", {{"norm", {{"norm", Shape{7}, 1.0, 0.0, Decay::kNo}}}}});
  return table;
}

struct Sharded {
  Sharded(const Mesh& mesh, DType compute, ShardingPolicy policy = {}, ParamTable units = small_table())
      : table(std::move(units)), parameters(table, mesh, backend, {.compute = compute, .policy = policy}, plan) {
    arena = std::make_unique<Arena>(plan, *backend.device);
    parameters.commit(*arena);
    parameters.initialize(9, *stream);
  }

  ParamTable table;
  Backend backend = make_cpu_backend();
  std::unique_ptr<Stream> stream = backend.device->make_stream();
  MemoryPlan plan;
  ShardedParameters parameters;
  std::unique_ptr<Arena> arena;
};

// Counts the collectives of tensors that are called while it observes.
struct CollectiveCount : Observer {
  void begin(Stream&, const Call& call) override { calls += call.kind == CallKind::kCollective; }
  void end(Stream&, const Call&) override {}
  int64_t calls = 0;
};

// The gathers that the host enqueues, in its order, with their units.
struct CallOrder : Observer {
  explicit CallOrder(const ShardedParameters& parameters) : parameters_(parameters) {}
  void begin(Stream& stream, const Call& call) override {
    for (const Operand& operand : call.operands) {
      if (call.kind != CallKind::kCollective || operand.access != Access::kRead) continue;
      const Tensor& all = parameters_.weights();
      const int64_t at = static_cast<const std::byte*>(operand.tensor->data()) - static_cast<std::byte*>(all.data());
      for (int64_t unit = 0; unit < 5; ++unit) {
        if (at != parameters_.slice_begin(unit) * size_of(all.dtype())) continue;
        calls.push_back(str(call.name, " ", unit, " on ", stream.name()));
      }
    }
  }
  void end(Stream&, const Call&) override {}

  const ShardedParameters& parameters_;
  std::vector<std::string> calls;
};

}  // namespace tokamak
