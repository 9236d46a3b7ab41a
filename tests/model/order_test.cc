// The order of the collectives in the forward and backward pass over the units: rank 0 of two, with a recording
// communicator.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/golden.h"
#include "model/recording_comm.h"

using namespace tokamak;

TEST_CASE("a step gathers a layer ahead, in backward before the reduction, and then the next micro-batch's embedding") {
  ModelConfig config = Golden("llama_gqa_untied").config;
  config.num_hidden_layers = 4;
  RecordingComm comm;
  SmallModel m(config, comm, {});
  const std::vector<int32_t> ids(16, 1);
  for (const bool last : {false, true}) {
    m.parameters.begin_microbatch(last);
    m.model.forward_backward(*m.stream, Sequences(ids, ids, 16).batch(), m.sums);
  }

  const auto unit_of = [&](const void* slice) {
    for (size_t u = 0; u < m.table.units.size(); ++u) {
      const int64_t begin = m.parameters.slice_begin(static_cast<int64_t>(u));
      for (const Tensor& shard : {m.parameters.weights(), m.parameters.gradients()}) {
        if (slice == shard.as<float>() + begin) return m.table.units[u].name;
      }
    }
    return std::string("and add");
  };
  std::vector<std::string> order;
  for (const RecordingComm::Call& call : comm.calls) order.push_back(call.name + unit_of(call.slice));
  const std::vector<std::string> expected = {
      "gather norms", "gather embedding", "gather layer.0", "gather layer.1", "gather layer.2", "gather layer.3",
      "gather head", "reduce head",  // backward from here; buffers still hold layers 3 and 2
      "gather layer.1", "reduce layer.3", "gather layer.0", "reduce layer.2", "gather embedding", "reduce layer.1",
      "reduce layer.0", "reduce embedding",
      // The last micro-batch: buffers still hold layers 0 and 1. Reductions are now added to the slices.
      "gather layer.2", "gather layer.3", "gather head", "reduce and add", "gather layer.1", "reduce and add",
      "gather layer.0", "reduce and add", "reduce and add", "reduce and add", "reduce and add"};
  CHECK(order == expected);
}
