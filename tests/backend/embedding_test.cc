// Token embedding: rows are copied, gradients are added in order of the tokens.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr int64_t kVocab = 37, kWidth = 83;

// dtable + the sum over the tokens, in f32 and in order: what the contract fixes to the bit.
HostTensor add_in_order(const HostTensor& dtable, const HostTensor& ids, const HostTensor& dout) {
  const auto width = static_cast<size_t>(dtable.shape()[1]);
  const Values rows = ids.values(), d = dout.values();
  Values sums = dtable.values();
  for (size_t n = 0; n < rows.size(); ++n) {
    for (size_t c = 0; c < width; ++c) {
      double& sum = sums[static_cast<size_t>(rows[n]) * width + c];
      sum = static_cast<float>(sum) + static_cast<float>(d[n * width + c]);
    }
  }
  return HostTensor(DType::kF32, dtable.shape(), sums);
}

// Whether row n of `out` is row ids[n] of `table`, to the bit.
bool rows_are_named(const Tensor& out, const Tensor& table, const HostTensor& ids) {
  const auto width = static_cast<size_t>(table.dim(1) * size_of(table.dtype()));
  const std::string rows = bytes_of(out), from = bytes_of(table);
  const Values named = ids.values();
  for (size_t n = 0; n < named.size(); ++n) {
    if (rows.compare(n * width, width, from, static_cast<size_t>(named[n]) * width, width) != 0) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("embedding copies the rows that the ids name") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const int64_t width : {kWidth, int64_t{3}, int64_t{8}, int64_t{1032}}) {
      const HostTensor table = random_tensor(act, {kVocab, width}, "table");
      const HostTensor ids = random_ids({53}, 0, kVocab, "ids");
      HostTensor out(act, {53, width});
      cpu.ops().embedding(*cpu.stream, {ids, table, out});
      CHECK(rows_are_named(out, table, ids));
    }
  }
}

TEST_CASE("embedding scales rows and, in backward, gradients, rounded once") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const int64_t width : {kWidth, int64_t{8}, int64_t{1032}}) {
      const float scale = 59.75f;  // Gemma's sqrt(3584), rounded to bf16
      const HostTensor table = random_tensor(act, {kVocab, width}, "table"),
                       dout = random_tensor(act, {53, width}, "d");
      const HostTensor ids = random_ids({53}, 0, kVocab, "ids");
      HostTensor out(act, {53, width}), dtable(DType::kF32, {kVocab, width});
      cpu.ops().embedding(*cpu.stream, {ids, table, out, scale});
      cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable, scale});
      const Values rows = ids.values(), from = table.values(), d = dout.values();
      Values expected, sums(static_cast<size_t>(kVocab * width));
      for (size_t n = 0; n < rows.size(); ++n) {
        for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
          const size_t at = static_cast<size_t>(rows[n]) * static_cast<size_t>(width) + c;
          expected.push_back(double{scale} * from[at]);
          sums[at] += double{scale} * d[n * static_cast<size_t>(width) + c];
        }
      }
      CHECK(max_error_before_rounding(out, expected) < 1e-6);
      CHECK(max_relative_error(dtable, sums) < 1e-6);
    }
  }
}

TEST_CASE("embedding_backward adds each token's gradient to its row, in order and to the bit") {
  Workload largest = TestBackend::small_workload();
  largest.tokens = 2500;
  TestBackend cpu(largest);
  const auto check = [&](const HostTensor& ids, int64_t width, DType act) {
    const HostTensor dout = random_tensor(act, {ids.count(), width}, "dout");
    const HostTensor before = random_tensor(DType::kF32, {kVocab, width}, "dtable");
    const HostTensor expected = add_in_order(before, ids, dout);
    require_thread_invariance([&] {
      HostTensor dtable = before;
      cpu.ops().fill(*cpu.stream, {Tensor(cpu.workspace.data(), DType::kI32, cpu.workspace.shape()), 5});  // stale
      cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable});
      CHECK((dtable.bytes() == expected.bytes()));
      return dtable.bytes();
    });
  };
  for (const DType act : {DType::kF32, DType::kBF16}) {
    check(random_ids({301}, 0, kVocab, "ids"), kWidth, act);  // each id about eight times
    check(random_ids({301}, 0, kVocab, "ids"), 8, act);
    check(random_ids({301}, 0, kVocab, "ids"), 264, act);
    check(random_ids({2500}, 0, kVocab, "ids"), 16, act);  // about seventy times
    for (const int64_t tokens : {31, 32, 33, 64, 65}) check(random_ids({tokens}, 5, 6, "ids"), 8, act);
  }
}

TEST_CASE("embedding accepts tensors at any alignment") {
  TestBackend cpu;
  const int64_t width = 8, count = kVocab * width;
  const HostTensor ids = random_ids({kVocab}, 0, kVocab, "ids");
  for (const int64_t out_at : {0, 1}) {
    const int64_t table_at = 1 - out_at;
    const HostTensor table = random_tensor(DType::kF32, {count + 1}, "table");
    HostTensor out(DType::kF32, {count + 1});
    const Tensor t = table.view().flat(table_at, table_at + count).reshape({kVocab, width});
    const Tensor o = out.view().flat(out_at, out_at + count).reshape({kVocab, width});
    cpu.ops().embedding(*cpu.stream, {ids, t, o});
    CHECK(rows_are_named(o, t, ids));
    const HostTensor dout(DType::kF32, {kVocab, width}, Values(static_cast<size_t>(count), 1.0));
    HostTensor dtable(DType::kF32, {count + 1});
    const Tensor d = dtable.view().flat(out_at, out_at + count).reshape({kVocab, width});
    cpu.ops().embedding_backward(*cpu.stream, {ids, dout, d});
    double total = 0;
    for (const double v : dtable.values()) total += v;
    CHECK(total == static_cast<double>(count));
  }
}

TEST_CASE("embedding_backward is the gradient of embedding") {
  TestBackend cpu;
  const HostTensor ids(DType::kI32, {5}, {2, 0, 2, 3, 2});
  const HostTensor dout = random_tensor(DType::kF32, {5, 3}, "dout");
  const HostTensor table = random_tensor(DType::kF32, {4, 3}, "table");
  HostTensor dtable(DType::kF32, {4, 3});
  cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable});
  const auto loss = [&, rows = ids.values()](const Values& t) {
    Values out;
    for (const double id : rows) {
      const auto row = t.begin() + static_cast<int64_t>(id) * 3;
      out.insert(out.end(), row, row + 3);
    }
    return dot(out, dout.values());
  };
  CHECK(max_relative_error(dtable, finite_difference(loss, table.values())) < 1e-6);
}

TEST_CASE("an id outside the vocabulary is a bug, not a read outside the table", "[cpu]") {
  TestBackend cpu;
  const HostTensor table = random_tensor(DType::kF32, {4, 3}, "table");
  HostTensor out(DType::kF32, {2, 3}), dtable(DType::kF32, {4, 3});
  for (const double bad : {4.0, -1.0}) {
    const HostTensor ids(DType::kI32, {2}, {1, bad});
    CHECK_THROWS_AS(cpu.ops().embedding(*cpu.stream, {ids, table, out}), Error);
    CHECK_THROWS_AS(cpu.ops().embedding_backward(*cpu.stream, {ids, out, dtable}), Error);
  }
}

TEST_CASE("an id outside the vocabulary shows as NaN, and adds to no row, where it is not refused") {
  TestBackend cpu;
  const HostTensor memory = random_tensor(DType::kF32, {6, 8}, "memory"),
                   dout = random_tensor(DType::kF32, {3, 8}, "d");
  for (const double bad : {4.0, -1.0}) {
    const HostTensor ids(DType::kI32, {3}, {bad, 1, bad});
    HostTensor out(DType::kF32, {3, 8}), gradients = memory;
    const Tensor dtable = gradients.view().rows(1, 5);
    try {
      cpu.ops().embedding(*cpu.stream, {ids, memory.view().rows(1, 5), out});
      cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable});
    } catch (const Error&) {
      continue;
    }
    const Values values = out.values();
    for (size_t i = 0; i < 24; ++i) CHECK(std::isnan(values[i]) == (i < 8 || i >= 16));
    Values expected = memory.values();
    for (size_t i = 0; i < 8; ++i) expected[16 + i] += dout.values()[8 + i];
    CHECK((gradients.bytes() == HostTensor(DType::kF32, {6, 8}, expected).bytes()));
  }
}

TEST_CASE("embedding accepts no tokens") {
  TestBackend cpu;
  const HostTensor table = random_tensor(DType::kF32, {4, 3}, "table");
  const HostTensor ids(DType::kI32, {0}), none(DType::kF32, {0, 3});
  HostTensor dtable = table;
  cpu.ops().embedding(*cpu.stream, {ids, table, none});
  cpu.ops().embedding_backward(*cpu.stream, {ids, none, dtable});
  CHECK((dtable.bytes() == table.bytes()));
}
