#include "model/activations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr const char* kNormBuffer = "norm";
constexpr const char* kOutput = "output";  // of the last layer

Shape shape_of(const ActivationRow& row, int64_t tokens) {
  if (row.layout == Layout::kRows) return {tokens, row.width};
  return row.layout == Layout::kByHead ? Shape{row.width, tokens} : Shape{tokens * row.width};
}

Shape planned_shape(const ActivationRow& row, int64_t tokens, int64_t rows_behind) {
  return shape_of(row, row.reader == Reader::kAttention ? tokens + rows_behind : tokens);
}

}  // namespace

PerKeptTensor<int64_t> ActivationPlan::bytes_of_layer(const LayerTable& layers, int64_t tokens, int64_t rows_behind,
                                                      DType compute) {
  PerKeptTensor<int64_t> bytes;
  for (const LayerTable::Kind& kind : layers.kinds()) {
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      for (const ActivationRow& row : kind.parts[part]->activations(compute)) {
        if (row.kept_as == kNotKept) continue;
        bytes[kind.kept_index(part, row.kept_as)] +=
            committed_bytes(row.dtype, planned_shape(row, tokens, rows_behind));
      }
    }
  }
  return bytes;
}

ActivationPlan::ActivationPlan(const LayerTable& layers, int64_t hidden, int64_t tokens, int64_t rows_behind,
                               DType compute, Passes passes, const KeptLayers& kept, MemoryPlan& plan)
    : kept_(passes == Passes::kForward ? KeptLayers{} : kept) {
  for (size_t i = 0; i < layers.kept().size(); ++i) {
    TOKAMAK_CHECK(0 <= kept_[i] && kept_[i] <= layers.kept()[i].most, kept_[i], " layers keep ", layers.kept()[i].name);
  }
  std::map<std::string, size_t> buffers;
  // Makes `tensor` a view of the buffer `name`, and plans that buffer at the first request.
  const auto add_view = [&](Tensor& tensor, const std::string& name, const ActivationRow& row) {
    const auto [found, is_new] = buffers.emplace(name, buffers_.size());
    if (is_new) {
      buffers_.push_back(
          {row, plan.add("activations/" + name, row.dtype, planned_shape(row, tokens, rows_behind)), {}});
    }
    const ActivationRow& same = buffers_[found->second].row;
    TOKAMAK_CHECK(same.dtype == row.dtype && same.layout == row.layout && same.width == row.width, name,
                  " has two shapes");
    views_.push_back({&tensor, found->second});
  };
  const ActivationRow residual{0, "residual", compute, Layout::kRows, hidden, Life::kShared};
  const ActivationRow per_token{0, "per token", DType::kF32, Layout::kPerToken, 1, Life::kShared};
  const bool backward = passes == Passes::kForwardAndBackward;
  add_view(tensors_.last, kOutput, residual);
  add_view(tensors_.rstd_final, "rstd_final", per_token);
  add_view(tensors_.norm, kNormBuffer, residual);
  add_view(tensors_.token_loss, "token_loss", per_token);
  if (backward) add_view(tensors_.dx, "d residual", residual);

  // Without backward all layers share one input. A layer's output overwrites it once it is no longer needed.
  const auto input_name = [&](int64_t l) { return str("layer.", backward ? l : 0, " input"); };
  tensors_.layers.resize(static_cast<size_t>(layers.layers()));
  for (int64_t l = 0; l < layers.layers(); ++l) {
    const LayerTable::Kind& kind = layers.kind(l);
    const int64_t nth = std::lower_bound(kind.layers.begin(), kind.layers.end(), l) - kind.layers.begin();
    PerKeptTensor<bool>& recomputed = recomputed_.emplace_back();
    Activations::Layer& layer = tensors_.layers[l];
    add_view(layer.x, input_name(l), residual);
    layer.parts.resize(kind.parts.size());
    layer.outputs.resize(kind.parts.size());
    std::set<std::string> names;
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      const std::vector<ActivationRow> rows = kind.parts[part]->activations(compute);
      for (const ActivationRow& row : rows) {
        layer.parts[part].resize(std::max(layer.parts[part].size(), static_cast<size_t>(row.id) + 1));
      }
      for (const ActivationRow& row : rows) {
        if (row.life == Life::kBackward && !backward) continue;
        std::string name = row.name;
        if (row.kept_as != kNotKept) {
          TOKAMAK_CHECK(names.insert(name).second, "two parts of a layer keep ", name);
          // The first `own` layers of a kind have a buffer each, the other layers share one more buffer.
          const size_t index = kind.kept_index(part, row.kept_as);
          const int64_t own = kept_[index];
          const bool in_norm = nth >= own && row.life == Life::kKeptOrNorm;
          recomputed[index] = nth >= own && (in_norm || nth < layers.kept()[index].most);
          const int64_t owner = kind.layers[std::min(nth, own)];
          name = in_norm ? kNormBuffer : str("layer.", owner, " ", name);
        }
        add_view(layer.parts[part][row.id], name, row);
        if (row.life != Life::kOutput) continue;
        TOKAMAK_CHECK(part + 1 < kind.parts.size(), row.name, " of a layer's last part");
        add_view(layer.outputs[part], name, row);
      }
    }
  }
  for (int64_t l = 0; l < layers.layers(); ++l) {
    add_view(tensors_.layers[l].outputs.back(), l + 1 < layers.layers() ? input_name(l + 1) : kOutput, residual);
  }
}

void ActivationPlan::commit(const Arena& arena) {
  for (Buffer& buffer : buffers_) buffer.whole = arena[buffer.slot];
}

const Activations& ActivationPlan::first(int64_t tokens) {
  if (tokens == tokens_) return tensors_;
  for (const View& view : views_) {
    const Buffer& buffer = buffers_[view.buffer];
    const Shape shape = shape_of(buffer.row, tokens);
    *view.tensor = buffer.whole.flat(0, shape.count()).reshape(shape);
  }
  tokens_ = tokens;
  return tensors_;
}

}  // namespace tokamak
