#include "model/activations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr const char* kNormBuffer = "norm";  // the buffer

KeptLayers kept_of(const LayerTable& layers, Keep keep, const KeptLayers& chosen) {
  if (keep == Keep::kLayerInputs) return chosen;
  return keep == Keep::kBackward ? all_kept(layers.kept()) : KeptLayers{};
}

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
                               DType compute, Keep keep, const KeptLayers& kept, MemoryPlan& plan)
    : kept_(kept_of(layers, keep, kept)) {
  for (size_t i = 0; i < layers.kept().size(); ++i) {
    TOKAMAK_CHECK(0 <= kept_[i] && kept_[i] <= layers.kept()[i].most, kept_[i], " layers keep ", layers.kept()[i].name);
  }
  std::map<std::string, size_t> buffers;
  std::vector<ActivationRow> planned;
  // The buffer of that name, planned where it is first asked for.
  const auto view_of = [&](const std::string& name, const ActivationRow& row) {
    const auto [found, is_new] = buffers.emplace(name, buffers_.size());
    if (is_new) {
      buffers_.push_back({plan.add("activations/" + name, row.dtype, planned_shape(row, tokens, rows_behind)), {}});
      planned.push_back(row);
    }
    const ActivationRow& same = planned[found->second];
    TOKAMAK_CHECK(same.dtype == row.dtype && same.layout == row.layout && same.width == row.width, name,
                  " has two shapes");
    return View{row, found->second};
  };
  const bool backward = keep != Keep::kNothing;
  using A = Activations;
  const auto add_to_model = [&](Tensor A::*tensor, const char* name, DType dtype, Layout layout, int64_t width) {
    model_.emplace_back(tensor, view_of(name, {0, name, dtype, layout, width, Life::kShared}));
  };
  add_to_model(&A::last, "output", compute, Layout::kRows, hidden);
  add_to_model(&A::rstd_final, "rstd_final", DType::kF32, Layout::kPerToken, 1);
  add_to_model(&A::norm, kNormBuffer, compute, Layout::kRows, hidden);
  add_to_model(&A::token_loss, "token_loss", DType::kF32, Layout::kPerToken, 1);
  if (backward) add_to_model(&A::dx, "d residual", compute, Layout::kRows, hidden);

  std::vector<int64_t> seen(layers.kinds().size());  // layers of each kind before this one
  for (int64_t l = 0; l < layers.layers(); ++l) {
    const LayerTable::Kind& kind = layers.kind(l);
    const int64_t nth = seen[layers.kind_index(l)]++;
    PerKeptTensor<bool>& again = recomputed_.emplace_back();
    // If all layers share the input, a layer's output overwrites it, when it is no longer needed.
    const ActivationRow input{0, "input", compute, Layout::kRows, hidden, Life::kShared};
    LayerViews& views = layers_.emplace_back(LayerViews{view_of(str("layer.", backward ? l : 0, " input"), input), {}});
    std::set<std::string> names;
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      std::vector<View>& part_views = views.parts.emplace_back();
      for (const ActivationRow& row : kind.parts[part]->activations(compute)) {
        if (row.life == Life::kBackward && !backward) continue;
        if (row.kept_as == kNotKept) {
          part_views.push_back(view_of(row.name, row));
          continue;
        }
        TOKAMAK_CHECK(row.life != Life::kOutput || part + 1 < kind.parts.size(), row.name, " of a layer's last part");
        TOKAMAK_CHECK(names.insert(row.name).second, "two parts of a layer keep ", row.name);
        // The first `own` layers of a kind have a buffer of their own, the others share the next one.
        const size_t index = kind.kept_index(part, row.kept_as);
        const int64_t own = kept_[index];
        const bool in_norm = nth >= own && row.life == Life::kKeptOrNorm;
        again[index] = nth >= own && (in_norm || nth < layers.kept()[index].most);
        const int64_t owner = kind.layers[static_cast<size_t>(std::min(nth, own))];
        part_views.push_back(view_of(in_norm ? kNormBuffer : str("layer.", owner, " ", row.name), row));
      }
    }
  }
}

void ActivationPlan::commit(const Arena& arena) {
  for (Buffer& buffer : buffers_) buffer.whole = arena[buffer.slot];
}

Tensor ActivationPlan::view(const View& view, int64_t tokens) const {
  const Shape shape = shape_of(view.row, tokens);
  return buffers_[view.buffer].whole.flat(0, shape.count()).reshape(shape);
}

Activations ActivationPlan::first(int64_t tokens) const {
  Activations a;
  for (const auto& [tensor, buffer] : model_) a.*tensor = view(buffer, tokens);
  for (const LayerViews& views : layers_) {
    Activations::Layer& layer = a.layers.emplace_back();
    layer.x = view(views.x, tokens);
    for (const std::vector<View>& part : views.parts) {
      std::vector<Tensor>& tensors = layer.parts.emplace_back();
      Tensor& output = layer.outputs.emplace_back();
      for (const View& one : part) {
        const auto at = static_cast<size_t>(one.row.at);
        if (tensors.size() <= at) tensors.resize(at + 1);
        tensors[at] = view(one, tokens);
        if (one.row.life == Life::kOutput) output = tensors[at];
      }
    }
  }
  for (size_t l = 0; l < a.layers.size(); ++l) {
    a.layers[l].outputs.back() = l + 1 < a.layers.size() ? a.layers[l + 1].x : a.last;
  }
  return a;
}

}  // namespace tokamak
