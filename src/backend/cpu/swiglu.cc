// SwiGLU and GeGLU: out = g(gate) * up, and the gradient, which may overwrite gate and up, and recomputes `out` on
// request.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "base/math.h"

namespace tokamak {
namespace {

struct Silu {
  static float value(float x) { return silu(x); }
  static float inner(float x) { return x; }  // value(x) = x sigmoid(inner(x))
  static float gradient(float x, float s) { return silu_gradient(x, s); }
};
struct Gelu {
  static float value(float x) { return gelu(x); }
  static float inner(float x) { return gelu_inner(x); }
  static float gradient(float x, float s) { return gelu_gradient(x, s); }
};

// Calls body(Silu()) or body(Gelu()).
template <class Body>
void with_gate(Gate gate, const Body& body) {
  gate == Gate::kSilu ? body(Silu()) : body(Gelu());
}

template <class G, class T>
void forward_row(const T* gate, const T* up, T* out, int64_t width) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) out[i] = from_float<T>(G::value(to_float(gate[i])) * to_float(up[i]));
}

template <class T>
struct GradientRow {
  const T* gate;
  const T* up;
  const T* dout;
  T* dgate;  // may be gate
  T* dup;    // may be up
  T* out;    // null: not wanted; may be dout
};

// Each element is read before it is written.
template <class G, bool kOut, class T>
void gradient_row(const GradientRow<T>& row, int64_t width) {
  const T *gate = row.gate, *up = row.up, *dout = row.dout;
  T *dgate = row.dgate, *dup = row.dup, *out = row.out;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float g = to_float(gate[i]), u = to_float(up[i]), d = to_float(dout[i]);
    const float s = sigmoid(G::inner(g));
    dgate[i] = from_float<T>(d * u * G::gradient(g, s));
    dup[i] = from_float<T>(d * (g * s));
    if constexpr (kOut) out[i] = from_float<T>(G::value(g) * u);
  }
}

}  // namespace

void CpuOps::do_swiglu(Stream&, const SwiGlu& args) {
  const int64_t rows = args.out.dim(0), width = args.out.dim(1);
  with_act_type(args.out.dtype(), [&]<class T>(T) {
    const T* gate_up = args.gate_up.as<T>();
    T* out = args.out.as<T>();
    with_gate(args.gate, [&]<class G>(G) {
      parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* gate = gate_up + n * 2 * width;
          forward_row<G>(gate, gate + width, out + n * width, width);
        }
      });
    });
  });
}

void CpuOps::do_swiglu_backward(Stream&, const SwiGluBackward& args) {
  const int64_t rows = args.dout.dim(0), width = args.dout.dim(1);
  with_act_type(args.dout.dtype(), [&]<class T>(T) {
    const T* gate_up = args.gate_up.as<T>();
    const T* dout = args.dout.as<T>();
    T* dgate_up = args.dgate_up.as<T>();
    T* out = args.out ? args.out.as<T>() : nullptr;
    with_gate(args.gate, [&]<class G>(G) {
      parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* gate = gate_up + n * 2 * width;
          T* dgate = dgate_up + n * 2 * width;
          const GradientRow<T> row{gate, gate + width, dout + n * width, dgate, dgate + width, out + n * width};
          out != nullptr ? gradient_row<G, true>(row, width) : gradient_row<G, false>(row, width);
        }
      });
    });
  });
}

}  // namespace tokamak
