// AttentionGraph by cudnn-frontend's SDPA nodes. The only file that includes cudnn-frontend, whose headers take half a
// minute to compile.
#include "cuda/attention/cudnn_graph.h"

#include <cudnn.h>
#include <cudnn_frontend.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/attention/cudnn_library.h"
#include "cuda/attention/cudnn_tensors.h"

namespace tokamak {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;

// Earlier versions accept ragged graphs, too. Their release notes name only Hopper and Blackwell 10.x, and there the
// gradient reads uninitialised workspace (Transformer Engine, issue 2186).
constexpr size_t kOldestRagged = 91801;

std::string text_of(fe::error_t& status) { return one_line(status.get_message()); }

class Builder {
 public:
  Builder(const AttentionGraphSpec& spec, Graph& graph) : spec_(spec), graph_(graph) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  void forward() {
    auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    options.set_implementation(fe::AttentionImplementation_t::COMPOSITE);
    mask(options);
    auto [out, stats] = graph_.sdpa(input(kQuery), input(kKey), input(kValue), options);
    describe(*out, kOut).set_output(true);
    describe(*stats, kStats).set_output(true);
  }

  void backward() {
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
    options.set_deterministic_algorithm(spec_.deterministic);
    // Its f32 sums then have rows for these tokens only, instead of T rows per slot.
    if (spec_.documents.ragged()) {
      options.set_max_total_seq_len_q(spec_.documents.tokens()).set_max_total_seq_len_kv(spec_.documents.tokens());
    }
    mask(options);
    auto [dquery, dkey, dvalue] = graph_.sdpa_backward(input(kQuery), input(kKey), input(kValue), input(kOut),
                                                       input(kDOut), input(kStats), options);
    describe(*dquery, kDQuery).set_output(true);
    describe(*dkey, kDKey).set_output(true);
    describe(*dvalue, kDValue).set_output(true);
  }

 private:
  using TensorPointer = decltype(std::declval<Graph>().tensor(Tensor_attributes()));

  template <class Options>
  void mask(Options& options) {
    options.set_attn_scale(input(kScale))
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    // Hides column + bound <= row, so the bound counts the token itself, as the window does.
    if (spec_.window > 0) options.set_diagonal_band_left_bound(spec_.window);
    if (spec_.documents.ragged()) {
      options.set_padding_mask(true).set_seq_len_q(input(kQueryLengths)).set_seq_len_kv(input(kKeyLengths));
    }
  }

  TensorPointer input(int64_t id) {
    Tensor_attributes attributes;
    describe(attributes, id);
    return graph_.tensor(attributes);
  }

  Tensor_attributes& describe(Tensor_attributes& tensor, int64_t id) {
    if (const auto offsets = offsets_of(spec_, id)) {
      TensorPointer& known = offsets_[*offsets];  // shared by all tensors with the same offsets
      if (known == nullptr) known = input(*offsets);
      tensor.set_ragged_offset(known);
    }
    const CallTensorShape shape = shape_of(spec_, id);
    const fe::DataType_t types[] = {fe::DataType_t::BFLOAT16, fe::DataType_t::FLOAT, fe::DataType_t::INT32,
                                    fe::DataType_t::INT64};
    return tensor.set_uid(id)
        .set_dim(shape.dims)
        .set_stride(shape.strides)
        .set_data_type(types[static_cast<int>(shape.type)])
        .set_is_pass_by_value(id == kScale);
  }

  const AttentionGraphSpec& spec_;
  Graph& graph_;
  std::unordered_map<int64_t, TensorPointer> offsets_;
};

class BuiltGraph final : public AttentionGraph {
 public:
  explicit BuiltGraph(const AttentionGraphSpec& spec) : spec_(spec) {
    Builder builder(spec, graph_);
    spec.backward ? builder.backward() : builder.forward();
  }

  // Empty, or the reason for the refusal.
  std::string prepare(const CudnnTarget& target) {
    if (const size_t version = cudnnGetVersion(); spec_.documents.ragged() && version < kOldestRagged) {
      return str("cuDNN ", version_text(version), " is older than ", version_text(kOldestRagged),
                 ", the first that is sound for ragged documents");
    }
    graph_.set_sm_version(target.compute_capability);
    if (target.handle == nullptr) {
      auto properties = std::make_unique<fe::DeviceProperties>();
      const std::vector<uint8_t> json(target.description.begin(), target.description.end());
      if (auto status = properties->deserialize(json); status.is_bad()) return text_of(status);
      graph_.set_device_properties(std::move(properties));
    }
    auto status = graph_.validate();
    if (status.is_good()) status = graph_.build_operation_graph(target.handle);
    // Heuristic mode B does not cover attention: cuDNN answers as mode A.
    if (status.is_good()) status = graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_good()) graph_.deselect_workspace_greater_than(target.most_workspace_bytes);
    if (status.is_good()) status = graph_.check_support();
    if (target.handle == nullptr) return status.is_good() ? "" : text_of(status);
    if (status.is_good()) status = graph_.build_plans();
    if (status.is_good()) status = graph_.get_workspace_size(workspace_bytes_);
    if (status.is_good()) status = graph_.get_plan_name(engine_);
    return status.is_good() ? "" : text_of(status);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  std::string engine() const override { return engine_; }

  void run(cudnnHandle_t handle, const AttentionPointers& p, std::byte* workspace) override {
    float scale = p.scale;
    const auto addresses = addresses_of(spec_, p, &scale);
    std::unordered_map<int64_t, void*> pack(addresses.begin(), addresses.end());
    if (auto status = graph_.execute(handle, pack, workspace); status.is_bad()) {
      fail(Kind::kDeviceFault, str("cuDNN: attention", spec_.backward ? " backward" : "", ": ", text_of(status)));
    }
  }

 private:
  AttentionGraphSpec spec_;
  Graph graph_;
  int64_t workspace_bytes_ = 0;
  std::string engine_;
};

}  // namespace

std::unique_ptr<AttentionGraph> AttentionGraph::build(const AttentionGraphSpec& spec, const CudnnTarget& target,
                                                      std::string* why_not) {
  auto graph = std::make_unique<BuiltGraph>(spec);
  *why_not = graph->prepare(target);
  if (!why_not->empty()) return nullptr;
  return graph;
}

}  // namespace tokamak
