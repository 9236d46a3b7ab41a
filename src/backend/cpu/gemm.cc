// GemmEngine by oneDNN. Its "brgemm" kernels keep every sum on one thread and are used directly. Results must not
// depend on the number of threads, so two cases are handled here. Sums over the rows of A (weight gradients) may be
// split among threads from 2048 terms on: they are cut into fixed pieces, which are summed in f32. Cases without a
// brgemm kernel (processors without AVX-512, bf16 without AVX512-BF16, odd shapes) are cut into fixed tiles of C, each
// computed in f32 by one thread.
#include "backend/cpu/gemm.h"

#include <omp.h>

#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "base/error.h"
#include "base/parallel_for.h"

namespace tokamak {
namespace {

using dnnl::memory;

constexpr size_t kMaxKernels = 1024;  // a model has a few dozen shapes; beyond this the map is cleared
constexpr int64_t kMaxTerms = 1984;   // longest sum over rows of A that no kernel splits among threads
constexpr int64_t kStripRows = 1024;  // shorter ones pack the other operand more often
constexpr int64_t kTileRows = 256, kTileColumns = 512, kTileTerms = 1024;

// The operands that are added to the GEMM's result.
enum class AddedOperand { kNothing, kOutput, kResidual, kBias, kResidualAndBias };

bool by_rows(const MatrixView& m) { return m.column_stride == 1 && m.row_stride >= m.columns; }

memory::desc desc_of(const MatrixView& m) {
  const auto type = by_act_type(m.dtype, memory::data_type::f32, memory::data_type::bf16);
  return {{m.rows, m.columns}, type, memory::dims{m.row_stride, m.column_stride}};
}

// Rows [row, row + rows) and columns [column, column + columns).
MatrixView part(const MatrixView& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  MatrixView out = m;
  out.data = static_cast<std::byte*>(m.data) + (row * m.row_stride + column * m.column_stride) * size_of(m.dtype);
  out.rows = rows;
  out.columns = columns;
  return out;
}

// A row broadcast to a matrix.
MatrixView repeated(MatrixView row) {
  row.row_stride = 0;
  return row;
}

// The matrix in f32: itself, or a copy in `memory` in the same storage order.
MatrixView widened(const MatrixView& from, float* memory) {
  if (from.dtype == DType::kF32) return from;
  TOKAMAK_CHECK(from.dtype == DType::kBF16, name_of(from.dtype));
  MatrixView to = from;
  to.data = memory;
  to.dtype = DType::kF32;
  const bool rows = by_rows(from);
  (rows ? to.row_stride : to.column_stride) = rows ? from.columns : from.rows;
  const int64_t lines = rows ? from.rows : from.columns, length = rows ? from.columns : from.rows;
  for (int64_t r = 0; r < lines; ++r) {
    const bf16* x = static_cast<const bf16*>(from.data) + r * (rows ? from.row_stride : from.column_stride);
    for (int64_t i = 0; i < length; ++i) memory[r * length + i] = to_float(x[i]);
  }
  return to;
}

// c = alpha a b + beta c, all f32; single-threaded if called inside a parallel region (dnnl_sgemm ensures that).
void multiply_f32(float alpha, const MatrixView& a, const MatrixView& b, float beta, const MatrixView& c) {
  const auto trans = [](const MatrixView& m) { return by_rows(m) ? 'N' : 'T'; };
  const auto stride = [](const MatrixView& m) { return by_rows(m) ? m.row_stride : m.column_stride; };
  const auto* x = static_cast<const float*>(a.data);
  const auto* y = static_cast<const float*>(b.data);
  const dnnl_status_t status = dnnl_sgemm(trans(a), trans(b), c.rows, c.columns, a.columns, alpha, x, stride(a), y,
                                          stride(b), beta, static_cast<float*>(c.data), c.row_stride);
  TOKAMAK_CHECK(status == dnnl_success, "dnnl_sgemm returns ", static_cast<int>(status));
}

// c = product, row by row; the dtypes may differ.
template <class From, class To>
void convert_rows(const MatrixView& from, const MatrixView& to) {
  for (int64_t r = 0; r < to.rows; ++r) {
    const From* x = static_cast<const From*>(from.data) + r * from.row_stride;
    To* y = static_cast<To*>(to.data) + r * to.row_stride;
    for (int64_t i = 0; i < to.columns; ++i) y[i] = from_float<To>(to_float(x[i]));
  }
}

// sums += from, row by row.
template <class From>
void add_rows(const MatrixView& from, const MatrixView& sums) {
  for (int64_t r = 0; r < sums.rows; ++r) {
    const From* x = static_cast<const From*>(from.data) + r * from.row_stride;
    float* y = static_cast<float*>(sums.data) + r * sums.row_stride;
    for (int64_t i = 0; i < sums.columns; ++i) y[i] += to_float(x[i]);
  }
}

AddedOperand added_operand(const GemmEngine::Call& call) {
  if (call.accumulate) return AddedOperand::kOutput;
  const bool residual = call.residual.data != nullptr;
  if (call.bias.data != nullptr) return residual ? AddedOperand::kResidualAndBias : AddedOperand::kBias;
  return residual ? AddedOperand::kResidual : AddedOperand::kNothing;
}

bool has_residual(AddedOperand added) {
  return added == AddedOperand::kResidual || added == AddedOperand::kResidualAndBias;
}
bool has_bias(AddedOperand added) { return added == AddedOperand::kBias || added == AddedOperand::kResidualAndBias; }

}  // namespace

struct GemmEngine::State {
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, DType, int64_t, int64_t, int64_t, int64_t, int64_t,
                         AddedOperand, float, float>;
  struct Scratch {  // of one thread that computes tiles
    std::vector<float> a, b, c;
  };
  struct Kernel {
    dnnl::matmul primitive;
    memory::desc scratch;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, std::optional<Kernel>> kernels;  // nullopt: no kernel keeps sums on one thread
  memory kernel_scratch;                         // of the kernel that runs; by default each kernel would keep its own
  std::vector<Scratch> scratch;
  std::vector<std::byte> few_rows;
  std::vector<float> strip;

  const std::optional<Kernel>& kernel(const Call& call, AddedOperand added) {
    const MatrixView &a = call.a, &b = call.b, &c = call.c;
    const Key key{a.rows,       b.columns,       a.columns,    a.dtype, c.dtype,    a.row_stride,       a.column_stride,
                  b.row_stride, b.column_stride, c.row_stride, added,   call.alpha, call.residual_scale};
    const auto found = kernels.find(key);
    if (found != kernels.end()) return found->second;
    if (kernels.size() >= kMaxKernels) kernels.clear();
    return kernels.emplace(key, make_kernel(call, added)).first->second;
  }

  std::optional<Kernel> make_kernel(const Call& call, AddedOperand added) const {
    if (!by_rows(call.a) && call.a.columns > kMaxTerms) return std::nullopt;
    dnnl::post_ops post;
    if (added == AddedOperand::kOutput) post.append_sum(1.0f);
    if (has_residual(added)) post.append_binary(dnnl::algorithm::binary_add, desc_of(call.c));
    if (has_bias(added)) post.append_binary(dnnl::algorithm::binary_add, desc_of(call.bias));
    // The library scales the product and the sum, but not what it adds: beta (alpha / beta a b + residual).
    const float beta = call.residual_scale;
    if (beta != 1) post.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, beta, 0.0f);
    dnnl::primitive_attr attributes;
    if (call.alpha != 1 || beta != 1) attributes.set_output_scales(0, {call.alpha / beta});
    attributes.set_post_ops(post);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    try {
      const dnnl::matmul::primitive_desc desc({desc_of(call.a), desc_of(call.b), desc_of(call.c)}, attributes, engine);
      if (starts_with(desc.impl_info_str(), "brg:")) return Kernel{dnnl::matmul(desc), desc.scratchpad_desc()};
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;  // bf16 on a processor without AVX-512
    }
    return std::nullopt;
  }

  memory scratch_of(const Kernel& kernel) {
    const size_t bytes = kernel.scratch.get_size();
    if (!kernel_scratch || kernel_scratch.get_desc().get_size() < bytes) {
      kernel_scratch = memory();  // frees the old one before it allocates the larger one
      kernel_scratch = memory(kernel.scratch, engine);
    }
    return memory(kernel.scratch, engine, kernel_scratch.get_data_handle());
  }

  bool try_kernel(const Call& call, AddedOperand added) {
    const std::optional<Kernel>& found = kernel(call, added);
    if (!found.has_value()) return false;
    const auto view = [&](const MatrixView& m) { return memory(desc_of(m), engine, m.data); };
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, view(call.a)},
                                                 {DNNL_ARG_WEIGHTS, view(call.b)},
                                                 {DNNL_ARG_DST, view(call.c)},
                                                 {DNNL_ARG_SCRATCHPAD, scratch_of(*found)}};
    int operands = 0;  // of post-operations
    const auto add = [&](const MatrixView& operand) {
      arguments.insert({DNNL_ARG_ATTR_MULTIPLE_POST_OP(operands++) | DNNL_ARG_SRC_1, view(operand)});
    };
    if (has_residual(added)) add(call.residual);
    if (has_bias(added)) add(call.bias);
    found->primitive.execute(stream, arguments);
    stream.wait();
    return true;
  }

  // A long sum over rows of A and B in fixed pieces, accumulated in c, which is f32.
  bool try_pieces(const Call& call, AddedOperand added) {
    const int64_t terms = call.a.columns, pieces = (terms + kMaxTerms - 1) / kMaxTerms;
    if (call.c.dtype != DType::kF32 || by_rows(call.a) || !by_rows(call.b) || pieces == 1) return false;
    const int64_t length = (terms / pieces + 64) / 64 * 64;
    for (int64_t k = 0; k < terms; k += length) {
      const int64_t taken = std::min(length, terms - k);
      Call piece = call;
      if (k > 0) piece.residual_scale = 1;
      piece.a = part(call.a, 0, call.a.rows, k, taken);
      piece.b = part(call.b, k, taken, 0, call.b.columns);
      if (!try_kernel(piece, k == 0 ? added : AddedOperand::kOutput)) {
        TOKAMAK_CHECK(k == 0, "a GEMM of ", taken, " terms has no kernel, though one of ", length, " has");
        return false;
      }
    }
    return true;
  }

  // As try_pieces, where c is bf16 and nothing is added: rows of c are summed in f32, then rounded.
  bool try_strips(const Call& call, AddedOperand added) {
    if (call.c.dtype == DType::kF32 || added != AddedOperand::kNothing) return false;
    const int64_t columns = call.c.columns;
    for (int64_t row = 0; row < call.c.rows; row += kStripRows) {
      const int64_t rows = std::min(kStripRows, call.c.rows - row);
      strip.resize(static_cast<size_t>(rows * columns));
      const MatrixView sums(Tensor(strip.data(), DType::kF32, {rows, columns}));
      Call wide = call;
      wide.a = part(call.a, row, rows, 0, call.a.columns);
      wide.c = sums;
      if (!try_pieces(wide, added)) {
        if (row == 0) return false;
        run_tiles(wide, added);  // the last rows may be too few for a kernel
      }
      parallel_for(rows, row_grain(columns), [&](int64_t first, int64_t last) {
        const auto of = [&](const MatrixView& m, int64_t before) {
          return part(m, before + first, last - first, 0, columns);
        };
        convert_rows<float, bf16>(of(sums, 0), of(call.c, row));
      });
    }
    return true;
  }

  void run_tiles(const Call& call, AddedOperand added) {
    const int64_t across = (call.c.columns + kTileColumns - 1) / kTileColumns;
    const int64_t tiles = (call.c.rows + kTileRows - 1) / kTileRows * across;
    const int threads = thread_count();
    scratch.resize(std::max(scratch.size(), static_cast<size_t>(threads)));
    if (tiles == 1) set_thread_count(1);  // otherwise dnnl_sgemm would split the sums
    parallel_for(tiles, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        run_tile(call, added, i / across * kTileRows, i % across * kTileColumns, scratch[omp_get_thread_num()]);
      }
    });
    set_thread_count(threads);
  }

  static void run_tile(const Call& call, AddedOperand added, int64_t row, int64_t column, Scratch& memory) {
    const int64_t rows = std::min(kTileRows, call.c.rows - row), terms = call.a.columns;
    const int64_t columns = std::min(kTileColumns, call.c.columns - column);
    memory.a.resize(kTileRows * kTileTerms);
    memory.b.resize(kTileTerms * kTileColumns);
    memory.c.resize(kTileRows * kTileColumns);
    const MatrixView c = part(call.c, row, rows, column, columns);
    const MatrixView tile(Tensor(memory.c.data(), DType::kF32, {rows, columns}));
    with_act_type(c.dtype, [&]<class C>(C) {
      const auto here = [&](const MatrixView& m) { return part(m, row, rows, column, columns); };
      if (has_residual(added)) convert_rows<C, float>(here(call.residual), tile);
      if (added == AddedOperand::kOutput) convert_rows<C, float>(c, tile);
      if (added == AddedOperand::kBias) convert_rows<C, float>(here(repeated(call.bias)), tile);
      if (added == AddedOperand::kResidualAndBias) add_rows<C>(here(repeated(call.bias)), tile);
    });
    const int64_t step = call.a.dtype == DType::kF32 ? terms : kTileTerms;
    for (int64_t k = 0; k < terms; k += step) {
      const int64_t taken = std::min(step, terms - k);
      const float beta = k > 0 ? 1.0f : added == AddedOperand::kNothing ? 0.0f : call.residual_scale;
      multiply_f32(call.alpha, widened(part(call.a, row, rows, k, taken), memory.a.data()),
                   widened(part(call.b, k, taken, column, columns), memory.b.data()), beta, tile);
    }
    with_act_type(c.dtype, [&]<class C>(C) { convert_rows<float, C>(tile, c); });
  }
};

GemmEngine::GemmEngine() : state_(std::make_unique<State>()) {}

GemmEngine::~GemmEngine() = default;

void GemmEngine::run(const Call& call) {
  if (call.c.rows == 0 || call.c.columns == 0) return;
  TOKAMAK_CHECK(call.a.columns > 0, "a GEMM of no terms");
  const AddedOperand added = added_operand(call);
  if (is_few_rows(call)) return multiply_few_rows(call, state_->few_rows);
  if (state_->try_kernel(call, added) || state_->try_pieces(call, added) || state_->try_strips(call, added)) return;
  state_->run_tiles(call, added);
}

void CpuOps::do_gemm(Stream&, const Gemm& args) {
  const MatrixView a(args.a), b(args.b);
  GemmEngine::Call call;
  call.a = args.trans_a == Transpose::kYes ? a.transposed() : a;
  call.b = args.trans_b == Transpose::kYes ? b.transposed() : b;
  call.c = MatrixView(args.c);
  if (args.residual) call.residual = MatrixView(args.residual);
  if (args.bias) call.bias = MatrixView(args.bias.reshape({1, args.bias.count()}));
  call.accumulate = args.write == Write::kAccumulate;
  call.alpha = args.alpha;
  call.residual_scale = args.residual_scale;
  gemm_->run(call);
}

}  // namespace tokamak
