// Sums over rows against float64. (That they are a bias's gradient, tests/model shows with transformers' numbers.)
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Problem {
  int64_t rows;
  int64_t width;
  DType act;
};

// Widths that are or are not multiples of 16 bytes; numbers of rows that no number of blocks or warps divides.
const std::vector<Problem> kProblems = {{1, 3, DType::kF32},      {45, 83, DType::kF32},     {45, 83, DType::kBF16},
                                        {257, 131, DType::kF32},  {2100, 136, DType::kBF16}, {2100, 260, DType::kF32},
                                        {4101, 72, DType::kBF16}, {5000, 24, DType::kF32}};

Workload largest() {
  Workload w = TestBackend::small_workload();
  w.tokens = 5000;
  return w;
}

Values expected(const HostTensor& x, Values out) {
  const Values values = x.values();
  for (size_t i = 0; i < values.size(); ++i) out[i % out.size()] += values[i];
  return out;
}

}  // namespace

TEST_CASE("column_sums adds every row to what is there") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    INFO(p.rows << " rows of " << p.width);
    const HostTensor x = random_tensor(p.act, {p.rows, p.width}, "x");
    const HostTensor sums = random_tensor(DType::kF32, {p.width}, "sums");
    const Values before = sums.values();
    cpu.ops().column_sums(*cpu.stream, {x, sums});
    CHECK(max_relative_error(sums, expected(x, before)) < 1e-6);
  }
}

TEST_CASE("column_sums of many equal terms loses no digits") {
  TestBackend cpu(largest());
  const HostTensor x(DType::kF32, {5000, 8}, Values(5000 * 8, 0.1f));
  HostTensor sums(DType::kF32, {8});
  cpu.ops().column_sums(*cpu.stream, {x, sums});
  CHECK(max_relative_error(sums, Values(8, 5000 * static_cast<double>(0.1f))) < 1.5e-6);  // one plain f32 sum: 4e-5 off
}

TEST_CASE("column_sums accepts a matrix at any alignment") {
  TestBackend cpu;
  const HostTensor memory = random_tensor(DType::kBF16, {45 * 64 + 1}, "x");
  const Tensor x = memory.view().flat(1, 45 * 64 + 1).reshape({45, 64});
  const HostTensor copy = HostTensor::copy_of(x), sums(DType::kF32, {64});
  cpu.ops().column_sums(*cpu.stream, {x, sums});
  CHECK(max_relative_error(sums, expected(copy, Values(64))) < 1e-6);
}

TEST_CASE("column_sums of no rows changes nothing") {
  TestBackend cpu;
  const HostTensor none(DType::kBF16, {0, 64}), sums = random_tensor(DType::kF32, {64}, "sums");
  const std::string before = sums.bytes();
  cpu.ops().column_sums(*cpu.stream, {none, sums});
  CHECK((sums.bytes() == before));
}

TEST_CASE("column_sums gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu(largest());
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const HostTensor x = random_tensor(act, {5000, 1000}, "x");
    require_thread_invariance([&] {
      HostTensor sums(DType::kF32, {1000});
      cpu.ops().column_sums(*cpu.stream, {x, sums});
      return sums.bytes();
    });
  }
}
