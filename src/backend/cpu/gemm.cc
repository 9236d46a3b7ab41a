// oneDNN's matmul behind GemmEngine. Two things are ours. Results must not depend on the number of threads, but some of
// the library's kernels share long sums among threads when there are enough of them (never below 2048 terms), so such
// sums are cut into fixed pieces. And processors without AVX-512 have no bf16 kernels: there blocks are widened to f32.
// Scratch memory of the library's kernels is its own (its global pool, which grows to the largest need and stays).
#include "backend/cpu/gemm.h"

#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "base/error.h"
#include "base/parallel_for.h"

namespace tokamak {

namespace {

using dnnl::memory;

constexpr size_t kMaxKernels = 1024;  // a model poses a few dozen shapes; beyond this the map starts anew
constexpr int64_t kMaxTerms = 1984;   // longest sum that no kernel shares among threads
constexpr int64_t kBlockRows = 512, kBlockColumns = 1024, kBlockTerms = 1024;  // of the path through f32 blocks

// What is added to the product.
enum class Addend { kNothing, kOutput, kResidual };

memory::desc desc_of(const MatrixView& m) {
  const auto type = m.dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
  return {{m.rows, m.columns}, type, memory::dims{m.row_stride, m.column_stride}};
}

int64_t offset(const MatrixView& m, int64_t row, int64_t column) {
  return row * m.row_stride + column * m.column_stride;
}

// Rows [row, row + rows) and columns [column, column + columns).
MatrixView part(const MatrixView& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  MatrixView out = m;
  out.data = static_cast<std::byte*>(m.data) + offset(m, row, column) * size_of(m.dtype);
  out.rows = rows;
  out.columns = columns;
  return out;
}

// A contiguous f32 matrix in `memory`, with the element order in storage of `like`.
MatrixView dense(std::vector<float>& memory, const MatrixView& like) {
  memory.resize(std::max(memory.size(), static_cast<size_t>(like.rows * like.columns)));
  MatrixView out = like;
  out.data = memory.data();
  out.dtype = DType::kF32;
  const bool by_rows = like.column_stride == 1;
  out.row_stride = by_rows ? like.columns : 1;
  out.column_stride = by_rows ? 1 : like.rows;
  return out;
}

// Calls row(storage row) for each contiguous row of m's storage.
template <class Row>
void for_each_row(const MatrixView& m, const Row& row) {
  const bool by_rows = m.column_stride == 1;
  parallel_for(by_rows ? m.rows : m.columns, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) row(by_rows ? offset(m, r, 0) : offset(m, 0, r), r);
  });
}

MatrixView widened(std::vector<float>& memory, const MatrixView& from) {
  if (from.dtype == DType::kF32) return from;
  const MatrixView to = dense(memory, from);
  const int64_t width = from.column_stride == 1 ? from.columns : from.rows;
  for_each_row(from, [&](int64_t at, int64_t r) {
    const bf16* x = static_cast<const bf16*>(from.data) + at;
    float* y = static_cast<float*>(to.data) + r * width;
    for (int64_t i = 0; i < width; ++i) y[i] = to_float(x[i]);
  });
  return to;
}

// to = from [+ residual], rounded once; `to` is bf16 with unit columns.
void narrow(const MatrixView& from, const MatrixView& residual, const MatrixView& to) {
  for_each_row(to, [&](int64_t at, int64_t r) {
    const float* x = static_cast<const float*>(from.data) + r * from.row_stride;
    const bf16* add = residual.data == nullptr ? nullptr : static_cast<const bf16*>(residual.data) + at;
    bf16* y = static_cast<bf16*>(to.data) + at;
    for (int64_t i = 0; i < to.columns; ++i) y[i] = bf16(add == nullptr ? x[i] : x[i] + to_float(add[i]));
  });
}

}  // namespace

struct GemmEngine::State {
  struct Kernel {
    dnnl::matmul run;
    bool whole_sums;  // never shares a sum among threads
  };
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, DType, int64_t, int64_t, int64_t, int64_t, int64_t, Addend>;

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Kernel> kernels;
  bool has_bf16 = probe_bf16();
  std::vector<float> wide_a, wide_b, wide_c;  // blocks, where the product goes through f32

  bool probe_bf16() const {
    const memory::desc square({64, 64}, memory::data_type::bf16, memory::format_tag::ab);
    try {
      const dnnl::matmul::primitive_desc possible({square, square, square}, engine);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

  const Kernel& kernel(const Call& call, Addend addend) {
    const MatrixView &a = call.a, &b = call.b, &c = call.c;
    const Key key{a.rows,          b.columns,    a.columns,       a.dtype,      c.dtype, a.row_stride,
                  a.column_stride, b.row_stride, b.column_stride, c.row_stride, addend};
    const auto found = kernels.find(key);
    if (found != kernels.end()) return found->second;
    if (kernels.size() >= kMaxKernels) kernels.clear();
    dnnl::post_ops post;
    if (addend == Addend::kOutput) post.append_sum(1.0f);
    if (addend == Addend::kResidual) post.append_binary(dnnl::algorithm::binary_add, desc_of(c));
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(post);
    const dnnl::matmul::primitive_desc desc({desc_of(a), desc_of(b), desc_of(c)}, attributes, engine);
    const std::string name = desc.impl_info_str();
    const bool whole = starts_with(name, "brg:") && name.find("amx") == std::string::npos;
    return kernels.emplace(key, Kernel{dnnl::matmul(desc), whole}).first->second;
  }

  void execute(const Call& call, Addend addend) {
    const auto view = [&](const MatrixView& m) { return memory(desc_of(m), engine, m.data); };
    std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, view(call.a)}, {DNNL_ARG_WEIGHTS, view(call.b)}, {DNNL_ARG_DST, view(call.c)}};
    if (addend == Addend::kResidual) {
      arguments.insert({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, view(call.residual)});
    }
    kernel(call, addend).run.execute(stream, arguments);
    stream.wait();
  }

  // The sum in fixed pieces; c is f32, so adding them up in it costs no precision.
  void execute_in_pieces(const Call& call, Addend addend) {
    const int64_t terms = call.a.columns, pieces = (terms + kMaxTerms - 1) / kMaxTerms;
    const int64_t length = (terms / pieces + 64) / 64 * 64;
    for (int64_t k = 0; k < terms; k += length) {
      const int64_t taken = std::min(length, terms - k);
      Call piece = call;
      piece.a = part(call.a, 0, call.a.rows, k, taken);
      piece.b = part(call.b, k, taken, 0, call.b.columns);
      execute(piece, k == 0 ? addend : Addend::kOutput);
    }
  }

  // Block by block: operands widened to f32 where the library has no bf16, products summed in f32, rounded at the end.
  void execute_in_blocks(const Call& call) {
    for (int64_t i = 0; i < call.c.rows; i += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, call.c.rows - i);
      for (int64_t j = 0; j < call.c.columns; j += kBlockColumns) {
        const int64_t columns = std::min(kBlockColumns, call.c.columns - j);
        const MatrixView c = part(call.c, i, rows, j, columns);
        const bool wide = c.dtype == DType::kF32;
        Call block;
        block.c = wide ? c : dense(wide_c, c);
        if (call.residual.data != nullptr) block.residual = part(call.residual, i, rows, j, columns);
        for (int64_t k = 0; k < call.a.columns; k += kBlockTerms) {
          const int64_t taken = std::min(kBlockTerms, call.a.columns - k);
          block.a = part(call.a, i, rows, k, taken);
          block.b = part(call.b, k, taken, j, columns);
          if (!has_bf16) block.a = widened(wide_a, block.a);
          if (!has_bf16) block.b = widened(wide_b, block.b);
          execute(block, k > 0 ? Addend::kOutput : wide ? addend_of(call) : Addend::kNothing);
        }
        if (!wide) narrow(block.c, block.residual, c);
      }
    }
  }

  static Addend addend_of(const Call& call) {
    if (call.accumulate || (call.residual.data != nullptr && call.residual.data == call.c.data)) return Addend::kOutput;
    return call.residual.data != nullptr ? Addend::kResidual : Addend::kNothing;
  }
};

GemmEngine::GemmEngine() : state_(std::make_unique<State>()) {}

GemmEngine::~GemmEngine() = default;

void GemmEngine::run(const Call& call) {
  if (call.c.rows == 0 || call.c.columns == 0) return;
  TOKAMAK_CHECK(call.a.columns > 0, "a product of no terms");
  const bool lacks_kernel = call.a.dtype == DType::kBF16 && !state_->has_bf16;
  const Addend addend = State::addend_of(call);
  if (lacks_kernel) {
    state_->execute_in_blocks(call);
  } else if (call.a.columns <= kMaxTerms || state_->kernel(call, addend).whole_sums) {
    state_->execute(call, addend);
  } else if (call.c.dtype == DType::kF32) {
    state_->execute_in_pieces(call, addend);
  } else {
    state_->execute_in_blocks(call);
  }
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
