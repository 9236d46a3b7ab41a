// Tables of ragged documents for cuDNN: their lengths, their offsets in every tensor, and empty slots.
#include "cuda/attention/cudnn_kernels.h"

#include "backend/support.h"
#include "cuda/attention/cudnn_layout.h"
#include "cuda/device.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr HeadLayout kHeads{4, 2, 8};

}  // namespace

TEST_CASE("a document begins at its first token's row, and entries that are left over are empty at the end") {
  const int32_t cu[] = {0, 5, 5, 9};
  const int64_t offsets[] = {0, 35, 35, 63, 63, 63};
  const int32_t lengths[] = {5, 0, 4, 0, 0};
  for (int64_t entry = 0; entry <= 5; ++entry) CHECK(document_offset(cu, 3, entry, 7) == offsets[entry]);
  for (int64_t entry = 0; entry < 5; ++entry) CHECK(document_length(cu, 3, entry) == lengths[entry]);
}

TEST_CASE("an offset passes 2^31 elements where a micro-batch does") {
  const int32_t cu[] = {0, 400'000, 1'000'000};
  CHECK(document_offset(cu, 2, 1, 6144) == int64_t{2'457'600'000});
  CHECK(document_offset(cu, 2, 9, 6144) == int64_t{6'144'000'000});
}

TEST_CASE("rows of tables that attention makes begin at multiples of 16 bytes, which cuDNN is promised") {
  for (const int64_t slots : {1, 2, 4, 64, 4096}) {
    const DocumentTableLayout layout(document_entries(slots), kHeads);
    CHECK(layout.entries > slots);
    CHECK(layout.entries <= slots + 4);
    for (int64_t rows = 0; rows < DocumentTables::kOffsets; ++rows) {
      CHECK(layout.offsets_at(DocumentTables::Offsets(rows)) % 16 == 0);
    }
    CHECK(layout.lengths_at() % 16 == 0);
  }
}

TEST_CASE("a run's tables have an entry for each slot that cuDNN may be asked for, and for their end") {
  for (const auto& [tokens, length] : {std::pair<int64_t, int64_t>{8192, 8192}, {16384, 2000}, {100, 8192}, {70, 70}}) {
    const int64_t entries = gpu_document_table_entries(AttentionKind::kAuto, {.tokens = tokens, .max_length = length});
    CHECK(entries > most_slots(ragged_documents(1, length, tokens)));
    CHECK(entries <= most_slots(ragged_documents(1, length, tokens)) + 4);
  }
  CHECK(gpu_document_table_entries(AttentionKind::kCudnn, {.tokens = 8192, .max_length = 8192}) == 68);
}

TEST_CASE("ragged_tables writes nothing behind its tables") {
  TestBackend backend;
  for (const int64_t documents : {0, 1, 5, 260}) {
    Values bounds(static_cast<size_t>(documents + 1));
    const HostTensor cu(DType::kI32, {documents + 1}, bounds);
    for (const int64_t entries : {documents + 1, document_entries(documents), documents + 131}) {
      const DocumentTableLayout layout(entries, kHeads);
      const int64_t words = layout.bytes() / 4;
      const HostTensor memory(DType::kI32, {words + 1}, Values(static_cast<size_t>(words + 1), -1));
      fill_ragged_tables(handle(*backend.stream), cu, layout, memory.view().data());
      const Values values = memory.values();
      CHECK(values.back() == -1);
      CHECK(std::count(values.begin(), values.end(), -1) == 1);
    }
  }
}
