// GEMMs of few rows (gemm.h).
#include <algorithm>
#include <bit>

#include "backend/cpu/gemm.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/simd.h"
#include "backend/cpu/tile.h"
#include "base/error.h"

namespace tokamak {
namespace {

using namespace simd;

// A column of b is contiguous in memory and called a line here. A block is kLanes lines, whose results in a row are a
// vector.
constexpr int64_t kBlockLines = kLanes;
constexpr int64_t kAhead = 16384;          // prefetch distance in elements, into the second-level cache
constexpr int64_t kGrainElements = 32768;  // elements of b per thread: enough to amortise its start

// Element types of the dot products of lines and rows: bf16 pairs if the processor supports them, else floats.
template <class T>
struct Terms {
  using Row = TileElement<T>;
  static constexpr int64_t kStep = kLanes * kPair<Row>;  // terms per vector
  using Vector = typename Pairs<Row>::Vector;

  static Vector load_line(const T* from) {
    if constexpr (std::is_same_v<T, Row>) {
      return Pairs<Row>::load(from);
    } else {
      return simd::load(from);
    }
  }
  // The last terms, padded with zeros.
  static Vector load_rest(const T* from, int64_t count) {
    T part[kStep];
    for (int64_t i = 0; i < kStep; ++i) part[i] = i < count ? from[i] : T(0.0f);
    return load_line(part);
  }
};

// The rows that every block of lines is multiplied with.
template <class T>
struct Rows {
  const typename Terms<T>::Row* values;  // (kRows, stride), zeros after the last term
  int64_t stride, terms;
};

// products[r kBlockLines + l] = row r times line l, for kLines lines with a distance of `terms`.
template <class T, int kRows, int kLines>
void multiply_lines(const Rows<T>& rows, const T* lines, float* products) {
  using P = Pairs<typename Terms<T>::Row>;
  Vec acc[kRows][kLines];
#pragma GCC unroll 8  // so that the sums stay in registers
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int l = 0; l < kLines; ++l) acc[r][l] = Vec{};
  }
  const auto add = [&](int64_t k, const auto& load) {
    typename P::Vector line[kLines];
#pragma GCC unroll 8
    for (int l = 0; l < kLines; ++l) __builtin_prefetch(lines + l * rows.terms + k + kAhead, 0, 2);
#pragma GCC unroll 8
    for (int l = 0; l < kLines; ++l) line[l] = load(lines + l * rows.terms + k);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto row = P::load(rows.values + r * rows.stride + k);
#pragma GCC unroll 8
      for (int l = 0; l < kLines; ++l) acc[r][l] = P::multiply_add(row, line[l], acc[r][l]);
    }
  };
  const int64_t whole = rows.terms / Terms<T>::kStep * Terms<T>::kStep;
  for (int64_t k = 0; k < whole; k += Terms<T>::kStep) add(k, Terms<T>::load_line);
  if (whole < rows.terms) {
    add(whole, [&](const T* from) { return Terms<T>::load_rest(from, rows.terms - whole); });
  }
  constexpr int kSums = kRows * kLines;
#pragma GCC unroll 2
  for (int first = 0; first < kSums; first += kLanes) {
    Vec some[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      some[i] = first + i < kSums ? acc[(first + i) / kLines][(first + i) % kLines] : Vec{};
    }
    const Vec sums = sums_of_rows(some);
    for (int i = 0; i < kLanes && first + i < kSums; ++i) {
      products[(first + i) / kLines * kBlockLines + (first + i) % kLines] = sums[i];
    }
  }
}

// The operands that are added to a block's results in one row; may be null.
template <class C>
struct Addends {
  const C *added, *bias;
};

// The results of a block in one row times alpha, plus the added ones times beta, plus the bias.
template <class C>
void write_block(const float* products, float alpha, const Addends<C>& from, float beta, C* to, int64_t count) {
  const auto values = [&](const C* x) {
    return x == nullptr ? Vec{} : count == kLanes ? load(x) : load_part(x, count, 0.0f);
  };
  const Vec added = multiply_add(splat(beta), values(from.added), values(from.bias));
  const Vec result = multiply_add(splat(alpha), load(products), added);
  count == kLanes ? store(to, result) : store_part(to, count, result);
}

template <class T, class C, int kRows>
void multiply_rows(const GemmEngine::Call& call, const Rows<T>& rows) {
  constexpr unsigned kSums = kLanes == 16 ? 16 : 8;  // sums that fit in registers together with the operands
  constexpr int kLines = static_cast<int>(std::clamp(kSums / std::bit_ceil(unsigned{kRows}), 1u, 4u));
  const auto* b = static_cast<const T*>(call.b.data);
  auto* c = static_cast<C*>(call.c.data);
  const C* added = call.accumulate ? c : static_cast<const C*>(call.residual.data);
  const auto* bias = static_cast<const C*>(call.bias.data);
  const int64_t columns = call.c.columns, blocks = (columns + kBlockLines - 1) / kBlockLines;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (kBlockLines * std::max<int64_t>(rows.terms, 1)));
  parallel_for(blocks, grain, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t column = block * kBlockLines, count = std::min(kBlockLines, columns - column);
      const T* lines = b + column * call.b.column_stride;
      float products[kRows][kBlockLines] = {};
      int64_t l = 0;
      for (; l + kLines <= count; l += kLines) {
        multiply_lines<T, kRows, kLines>(rows, lines + l * rows.terms, &products[0][l]);
      }
      for (; l < count; ++l) {
        multiply_lines<T, kRows, 1>(rows, lines + l * rows.terms, &products[0][l]);
      }
      for (int r = 0; r < kRows; ++r) {
        const int64_t at = r * call.c.row_stride + column;
        const Addends<C> from{added == nullptr ? nullptr : added + at, bias == nullptr ? nullptr : bias + column};
        write_block(products[r], call.alpha, from, call.residual_scale, c + at, count);
      }
    }
  });
}

template <class T>
Rows<T> pack(const GemmEngine::Call& call, std::vector<std::byte>& scratch) {
  using Row = typename Terms<T>::Row;
  const int64_t terms = call.a.columns, stride = round_up(terms, Terms<T>::kStep);
  const size_t bytes = static_cast<size_t>(call.a.rows * stride) * sizeof(Row);
  if (scratch.size() < bytes) scratch.resize(bytes);
  auto* to = reinterpret_cast<Row*>(scratch.data());
  for (int64_t r = 0; r < call.a.rows; ++r) {
    const T* from = static_cast<const T*>(call.a.data) + r * call.a.row_stride;
    for (int64_t i = 0; i < terms; ++i) to[r * stride + i] = Row(to_float(from[i]));
    std::fill(to + r * stride + terms, to + (r + 1) * stride, Row(0.0f));
  }
  return {to, stride, terms};
}

template <class T, class C>
void run(const GemmEngine::Call& call, std::vector<std::byte>& scratch) {
  const Rows<T> rows = pack<T>(call, scratch);
  const auto with = [&]<int kRows>(std::integral_constant<int, kRows>) { multiply_rows<T, C, kRows>(call, rows); };
  switch (call.a.rows) {
    case 1:
      return with(std::integral_constant<int, 1>{});
    case 2:
      return with(std::integral_constant<int, 2>{});
    case 3:
      return with(std::integral_constant<int, 3>{});
    case 4:
      return with(std::integral_constant<int, 4>{});
    case 5:
      return with(std::integral_constant<int, 5>{});
    case 6:
      return with(std::integral_constant<int, 6>{});
    case 7:
      return with(std::integral_constant<int, 7>{});
    default:
      return with(std::integral_constant<int, 8>{});
  }
}

}  // namespace

bool is_few_rows(const GemmEngine::Call& call) {
  return call.a.rows <= kFewRows && call.a.column_stride == 1 && call.b.row_stride == 1 &&
         call.b.column_stride == call.b.rows;
}

void multiply_few_rows(const GemmEngine::Call& call, std::vector<std::byte>& scratch) {
  if (call.a.dtype == DType::kF32) return run<float, float>(call, scratch);
  TOKAMAK_CHECK(call.a.dtype == DType::kBF16, name_of(call.a.dtype));
  with_act_type(call.c.dtype, [&]<class C>(C) { run<bf16, C>(call, scratch); });
}

}  // namespace tokamak
