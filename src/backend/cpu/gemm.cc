#include "backend/cpu/gemm.h"

#include <dnnl.hpp>
#include <map>
#include <tuple>

#include "backend/cpu/cpu_ops.h"
#include "base/error.h"

namespace tokamak {

namespace {

using dnnl::memory;

memory::data_type type_of(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc desc_of(const MatrixView& m) {
  return {{m.rows, m.columns}, type_of(m.dtype), memory::dims{m.row_stride, m.column_stride}};
}

// What is added to the product.
enum class Addend { kNothing, kOutput, kResidual };

using Key = std::tuple<int64_t, int64_t, int64_t, DType, DType, int64_t, int64_t, int64_t, int64_t, int64_t, Addend>;

constexpr size_t kMaxKernels = 512;

}  // namespace

struct GemmEngine::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, dnnl::matmul> kernels;

  dnnl::matmul& kernel(const Call& call, Addend addend) {
    const Key key{call.a.rows,
                  call.b.columns,
                  call.a.columns,
                  call.a.dtype,
                  call.c.dtype,
                  call.a.row_stride,
                  call.a.column_stride,
                  call.b.row_stride,
                  call.b.column_stride,
                  call.c.row_stride,
                  addend};
    const auto found = kernels.find(key);
    if (found != kernels.end()) return found->second;
    if (kernels.size() >= kMaxKernels) kernels.clear();
    dnnl::post_ops post;
    if (addend == Addend::kOutput) post.append_sum(1.0f);
    if (addend == Addend::kResidual) post.append_binary(dnnl::algorithm::binary_add, desc_of(call.c));
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(post);
    const dnnl::matmul::desc desc(desc_of(call.a), desc_of(call.b), desc_of(call.c));
    return kernels.emplace(key, dnnl::matmul({desc, attributes, engine})).first->second;
  }
};

GemmEngine::GemmEngine() : state_(std::make_unique<State>()) {}

GemmEngine::~GemmEngine() = default;

void GemmEngine::run(const Call& call) {
  const bool in_place = call.accumulate || call.residual.data == call.c.data;
  const Addend addend = in_place                        ? Addend::kOutput
                        : call.residual.data != nullptr ? Addend::kResidual
                                                        : Addend::kNothing;
  const auto view = [&](const MatrixView& m) { return memory(desc_of(m), state_->engine, m.data); };
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, view(call.a)}, {DNNL_ARG_WEIGHTS, view(call.b)}, {DNNL_ARG_DST, view(call.c)}};
  if (addend == Addend::kResidual) {
    arguments.insert({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, view(call.residual)});
  }
  state_->kernel(call, addend).execute(state_->stream, arguments);
  state_->stream.wait();
}

void CpuOps::do_gemm(Stream&, const Gemm& args) {
  const MatrixView a(args.a), b(args.b);
  GemmEngine::Call call;
  call.a = args.trans_a == Transpose::kYes ? a.transposed() : a;
  call.b = args.trans_b == Transpose::kYes ? b.transposed() : b;
  call.c = MatrixView(args.c);
  if (args.residual) call.residual = MatrixView(args.residual);
  call.accumulate = args.write == Write::kAccumulate;
  gemm_->run(call);
}

}  // namespace tokamak
