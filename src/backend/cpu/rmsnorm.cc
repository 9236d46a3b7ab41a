// RMSNorm. The weight's gradient is a sum over all tokens. It is computed over a
// fixed partition of the rows and added in order, for any number of threads.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/rmsnorm_row.h"

namespace tokamak {

int64_t rmsnorm_backward_workspace(const Workload& workload) {
  return kMaxRowBlocks * workload.hidden * size_of(DType::kF32);
}

void CpuOps::do_rmsnorm(Stream&, const RmsNorm& args) {
  const int64_t rows = args.x.dim(0), width = args.x.dim(1);
  auto* rstd = args.rstd.as<float>();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* x = args.x.as<T>();
    const T* weight = args.weight.as<T>();
    const T* onto = args.onto ? args.onto.as<T>() : nullptr;
    T* y = args.y.as<T>();
    parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* in = x + n * width;
        rstd[n] = rstd_of(in, width, args.eps);
        if (onto != nullptr) {
          scale_onto(in, weight, args.offset, rstd[n], onto + n * width, y + n * width, width);
        } else {
          scale(in, weight, args.offset, rstd[n], y + n * width, width);
        }
      }
    });
  });
}

void CpuOps::do_rmsnorm_backward(Stream&, const RmsNormBackward& args) {
  const int64_t rows = args.x.dim(0), width = args.x.dim(1), block = rows_per_block(rows);
  const int64_t blocks = (rows + block - 1) / block;
  auto* partial = scratch<float>(workspace(), blocks * width);
  const auto* rstd = args.rstd.as<float>();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* dy = args.dy.as<T>();
    const T* x = args.x.as<T>();
    const T* weight = args.weight.as<T>();
    const T* dresidual = args.dresidual ? args.dresidual.as<T>() : nullptr;
    T* dx = args.dx.as<T>();
    T* y = args.y ? args.y.as<T>() : nullptr;
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* dweight = partial + b * width;
        std::fill(dweight, dweight + width, 0.0f);
        for (int64_t n = b * block; n < std::min(rows, (b + 1) * block); ++n) {
          const int64_t at = n * width;
          backward_row<T>({.dy = dy + at,
                           .x = x + at,
                           .weight = weight,
                           .dresidual = dresidual != nullptr ? dresidual + at : nullptr,
                           .dx = dx + at,
                           .dweight = dweight,
                           .rstd = rstd[n],
                           .offset = args.offset,
                           .y = y != nullptr ? y + at : nullptr},
                          width);
        }
      }
    });
  });
  add_columns(partial, blocks, width, args.dweight.as<float>());
}

}  // namespace tokamak
