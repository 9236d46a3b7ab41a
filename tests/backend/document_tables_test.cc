// The tables of documents, entry by entry as ops.h states them.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

int64_t i64_at(const std::string& bytes, int64_t index) {
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + index * 8, sizeof(value));
  return value;
}
int32_t i32_at(const std::string& bytes, int64_t index) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * 4, sizeof(value));
  return value;
}

}  // namespace

TEST_CASE("document_tables: where each document begins in rows of every width, its length, and empty ones at the end") {
  TestBackend backend;
  const HeadLayout heads{4, 2, 8};
  const int64_t widths[] = {64, 32, 16, 4};
  for (const auto& [documents, entries] :
       {std::pair<int64_t, int64_t>{0, 1}, {0, 4}, {1, 2}, {5, 8}, {64, 65}, {260, 512}, {127, 128}}) {
    INFO(documents << " documents, " << entries << " entries");
    Values cu = {0};
    for (int64_t d = 0; d < documents; ++d) cu.push_back(cu.back() + static_cast<double>(d * d % 7));
    const HostTensor tables = random_ids({DocumentTables::kRows, entries}, 1, 100, "before");
    backend.ops().document_tables(
        *backend.stream,
        {.cu_seqlens = HostTensor(DType::kI32, {documents + 1}, cu), .tables = tables, .heads = heads});
    const std::string bytes = tables.bytes();
    bool same = true;
    for (int64_t i = 0; i < entries; ++i) {
      const auto begin = static_cast<int64_t>(cu[static_cast<size_t>(std::min(i, documents))]);
      for (int64_t rows = 0; rows < 4; ++rows) same = same && i64_at(bytes, rows * entries + i) == begin * widths[rows];
      same = same && i32_at(bytes, 8 * entries + i) == (i < documents ? i * i % 7 : 0);
    }
    CHECK(same);
  }
}

TEST_CASE("document_tables: offsets beyond 2^31") {
  TestBackend backend;
  const HostTensor cu(DType::kI32, {3}, {0, 400'000, 1'000'000}), tables(DType::kI32, {DocumentTables::kRows, 4});
  backend.ops().document_tables(*backend.stream, {.cu_seqlens = cu, .tables = tables, .heads = {32, 8, 128}});
  const std::string bytes = tables.bytes();
  CHECK(i64_at(bytes, 1) == int64_t{400'000} * 6144);
  CHECK(i64_at(bytes, 3) == int64_t{1'000'000} * 6144);
  CHECK(i64_at(bytes, 4 + 1) == int64_t{400'000} * 4096);
}
