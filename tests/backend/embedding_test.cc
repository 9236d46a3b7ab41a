// Token embedding: rows are copied, gradients are added in order of the tokens.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr int64_t kVocab = 37, kWidth = 83;

// dtable + the sum over the tokens, in f32 and in order: what the contract fixes to the bit.
HostTensor add_in_order(HostTensor dtable, const HostTensor& ids, const HostTensor& dout) {
  const int64_t width = dtable.shape()[1];
  const Values d = dout.values();
  for (int64_t n = 0; n < ids.count(); ++n) {
    for (int64_t c = 0; c < width; ++c) {
      dtable.as<float>()[ids.as<int32_t>()[n] * width + c] += static_cast<float>(d[static_cast<size_t>(n * width + c)]);
    }
  }
  return dtable;
}

}  // namespace

TEST_CASE("embedding copies the rows that the ids name") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const HostTensor table = random_tensor(act, {kVocab, kWidth}, "table");
    const HostTensor ids = random_ids({53}, 0, kVocab, "ids");
    HostTensor out(act, {53, kWidth});
    cpu.ops().embedding(*cpu.stream, {ids, table, out});
    for (int64_t n = 0; n < 53; ++n) {
      const int64_t id = ids.as<int32_t>()[n];
      CHECK(std::memcmp(out.view().rows(n, n + 1).data(), table.view().rows(id, id + 1).data(),
                        static_cast<size_t>(kWidth * size_of(act))) == 0);
    }
  }
}

TEST_CASE("embedding_backward adds each token's gradient to its row, in order and to the bit") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const HostTensor ids = random_ids({301}, 0, kVocab, "ids");  // each id about eight times
    const HostTensor dout = random_tensor(act, {301, kWidth}, "dout");
    const HostTensor before = random_tensor(DType::kF32, {kVocab, kWidth}, "dtable");
    const HostTensor expected = add_in_order(before, ids, dout);
    require_thread_invariance([&] {
      HostTensor dtable = before;
      cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable});
      CHECK((dtable.bytes() == expected.bytes()));
      return dtable.bytes();
    });
  }
}

TEST_CASE("embedding_backward is the gradient of embedding") {
  TestBackend cpu;
  const HostTensor ids(DType::kI32, {5}, {2, 0, 2, 3, 2});
  const HostTensor dout = random_tensor(DType::kF32, {5, 3}, "dout");
  const HostTensor table = random_tensor(DType::kF32, {4, 3}, "table");
  HostTensor dtable(DType::kF32, {4, 3});
  cpu.ops().embedding_backward(*cpu.stream, {ids, dout, dtable});
  const auto loss = [&](const Values& t) {
    Values out;
    for (int64_t n = 0; n < 5; ++n) {
      const auto row = t.begin() + ids.as<int32_t>()[n] * 3;
      out.insert(out.end(), row, row + 3);
    }
    return dot(out, dout.values());
  };
  CHECK(max_relative_error(dtable, finite_difference(loss, table.values())) < 1e-6);
}

TEST_CASE("an id outside the vocabulary is a bug, not a read outside the table") {
  TestBackend cpu;
  const HostTensor table = random_tensor(DType::kF32, {4, 3}, "table");
  HostTensor out(DType::kF32, {2, 3}), dtable(DType::kF32, {4, 3});
  for (const double bad : {4.0, -1.0}) {
    const HostTensor ids(DType::kI32, {2}, {1, bad});
    CHECK_THROWS_AS(cpu.ops().embedding(*cpu.stream, {ids, table, out}), Error);
    CHECK_THROWS_AS(cpu.ops().embedding_backward(*cpu.stream, {ids, out, dtable}), Error);
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
