// cuDNN's scaled dot product attention (SDPA): causal, grouped heads, bf16 with sums in f32. Its Stats are ours:
// max + ln(sum exp(S - max)) of scaled scores (cudnn-frontend's node/softmax.h writes them out). It writes them in any
// layout since 9.12, but before 9.26 its backward reads only (B, Hq, T).
#include "cuda/attention_cudnn_graph.h"

#include <cudnn_frontend.h>

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tokamak {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Element = uint16_t;  // bf16

// Names of the tensors in a call.
enum TensorId : int64_t { kQuery = 1, kKey, kValue, kOut, kStats, kScale, kDOut, kDQuery, kDKey, kDValue };

std::vector<int64_t> strides_of(const HeadStrides& s, int64_t last = 1) { return {s.batch, s.head, s.token, last}; }

// cuDNN's message, which may list what each of its engines had against the graph: the first line and the last.
std::string text_of(fe::error_t& status) {
  std::string text = status.get_message();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t first = text.find('\n');
  return first == std::string::npos ? text : str(text.substr(0, first), " ... ", text.substr(text.rfind('\n') + 1));
}

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
    causal(options);
    auto [out, stats] = graph_.sdpa(input(kQuery), input(kKey), input(kValue), options);
    describe(*out, kOut).set_output(true);
    describe(*stats, kStats).set_output(true);
  }

  void backward() {
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
    options.set_deterministic_algorithm(spec_.deterministic);
    causal(options);
    auto [dquery, dkey, dvalue] = graph_.sdpa_backward(input(kQuery), input(kKey), input(kValue), input(kOut),
                                                       input(kDOut), input(kStats), options);
    describe(*dquery, kDQuery).set_output(true);
    describe(*dkey, kDKey).set_output(true);
    describe(*dvalue, kDValue).set_output(true);
  }

 private:
  template <class Options>
  void causal(Options& options) {
    options.set_attn_scale(input(kScale))
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }

  auto input(TensorId id) -> decltype(std::declval<Graph>().tensor(Tensor_attributes())) {
    Tensor_attributes attributes;
    describe(attributes, id);
    return graph_.tensor(attributes);
  }

  Tensor_attributes& describe(Tensor_attributes& tensor, TensorId id) const {
    tensor.set_uid(id);
    if (id == kScale) {
      return tensor.set_dim({1, 1, 1, 1})
          .set_stride({1, 1, 1, 1})
          .set_is_pass_by_value(true)
          .set_data_type(fe::DataType_t::FLOAT);
    }
    const auto& [b, t] = spec_.documents;
    const auto& [hq, hkv, d] = spec_.heads;
    const bool of_keys = id == kKey || id == kValue || id == kDKey || id == kDValue;
    tensor.set_dim({b, of_keys ? hkv : hq, t, id == kStats ? 1 : d}).set_stride(strides_of(strides(id)));
    return tensor.set_data_type(id == kStats ? fe::DataType_t::FLOAT : fe::DataType_t::BFLOAT16);
  }

  HeadStrides strides(TensorId id) const {
    const int64_t length = spec_.documents.length;
    switch (id) {
      case kQuery:
      case kDQuery:
        return query_strides(spec_.heads, length);
      case kKey:
      case kDKey:
        return key_strides(spec_.heads, length);
      case kValue:
      case kDValue:
        return value_strides(spec_.heads, length);
      case kStats:
        return spec_.backward ? packed_lse_strides(spec_.heads, length) : lse_strides(spec_.documents);
      default:
        return out_strides(spec_.heads, length);
    }
  }

  const AttentionGraphSpec& spec_;
  Graph& graph_;
};

class BuiltGraph final : public AttentionGraph {
 public:
  explicit BuiltGraph(const AttentionGraphSpec& spec) : spec_(spec) {
    Builder builder(spec, graph_);
    spec.backward ? builder.backward() : builder.forward();
  }

  // Empty, or why not.
  std::string prepare(const CudnnTarget& target) {
    graph_.set_sm_version(target.compute_capability);
    if (target.handle == nullptr) {
      auto properties = std::make_unique<fe::DeviceProperties>();
      const std::vector<uint8_t> json(target.description.begin(), target.description.end());
      if (auto status = properties->deserialize(json); status.is_bad()) return text_of(status);
      graph_.set_device_properties(std::move(properties));
    }
    auto status = graph_.validate();
    if (status.is_good()) status = graph_.build_operation_graph(target.handle);
    // Mode B has no model of attention: cuDNN answers as A.
    if (status.is_good()) status = graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_good()) status = graph_.check_support();
    if (target.handle == nullptr) return status.is_good() ? "" : text_of(status);
    if (status.is_good()) status = graph_.build_plans();
    if (status.is_good()) status = graph_.get_workspace_size(workspace_bytes_);
    return status.is_good() ? "" : text_of(status);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  std::string engine() const override {
    std::string name;
    return graph_.get_plan_name(name).is_good() ? name : "?";
  }

  void run(cudnnHandle_t handle, const AttentionPointers& p, std::byte* workspace) override {
    float scale = p.scale;
    const int64_t key = spec_.heads.q_width(), value = key + spec_.heads.kv_width();
    const auto qkv = static_cast<Element*>(p.qkv), dqkv = static_cast<Element*>(p.dqkv);
    std::unordered_map<int64_t, void*> pack = {{kQuery, qkv}, {kKey, qkv + key}, {kValue, qkv + value},
                                               {kOut, p.out}, {kStats, p.lse},   {kScale, &scale}};
    if (spec_.backward) {
      pack.insert({{kDOut, p.dout}, {kDQuery, dqkv}, {kDKey, dqkv + key}, {kDValue, dqkv + value}});
    }
    if (auto status = graph_.execute(handle, pack, workspace); status.is_bad()) {
      fail(Kind::kDevice, str("cuDNN: attention", spec_.backward ? " backward" : "", ": ", text_of(status)));
    }
  }

 private:
  AttentionGraphSpec spec_;
  Graph graph_;
  int64_t workspace_bytes_ = 0;
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
