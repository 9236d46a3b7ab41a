// What cuDNN reads about ragged documents: their lengths, where each begins in every tensor, and empty slots.
#include "cuda/attention/ragged_tables.h"

#include "backend/support.h"
#include "cuda/device.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr HeadLayout kHeads{4, 2, 8};

}  // namespace

TEST_CASE("a document begins at its first token's row, and slots that are left over are empty at the end") {
  const int32_t cu[] = {0, 5, 5, 9};
  const int64_t offsets[] = {0, 35, 35, 63, 63, 63};
  const int32_t lengths[] = {5, 0, 4, 0, 0};
  for (int64_t slot = 0; slot <= 5; ++slot) CHECK(ragged_offset(cu, 3, slot, 7) == offsets[slot]);
  for (int64_t slot = 0; slot < 5; ++slot) CHECK(ragged_length(cu, 3, slot) == lengths[slot]);
}

TEST_CASE("an offset passes 2^31 elements where a micro-batch does") {
  const int32_t cu[] = {0, 400'000, 1'000'000};
  CHECK(ragged_offset(cu, 2, 1, 6144) == int64_t{2'457'600'000});
  CHECK(ragged_offset(cu, 2, 9, 6144) == int64_t{6'144'000'000});
}

TEST_CASE("ragged_tables: an offset of every slot and of the end for rows of each width, and lengths") {
  TestBackend backend;
  for (const auto& [slots, documents] : {std::pair<int64_t, int64_t>{1, 1}, {8, 5}, {64, 64}, {512, 260}, {4, 0}}) {
    Values bounds = {0};
    for (int64_t d = 0; d < documents; ++d) bounds.push_back(bounds.back() + static_cast<double>(d * d % 7));
    const HostTensor cu(DType::kI32, {documents + 1}, bounds);
    const RaggedTables tables({slots, 128, 1024}, kHeads);
    const int64_t words = tables.bytes() / 4;
    const HostTensor memory(DType::kI32, {words + 1}, Values(static_cast<size_t>(words + 1), -1));
    fill_ragged_tables(handle(*backend.stream), cu.view().as<int32_t>(), documents, tables,
                       static_cast<std::byte*>(memory.view().data()));
    const std::string read = memory.bytes();
    const char* const bytes = read.data();
    bool same = true;
    const auto* lengths = reinterpret_cast<const int32_t*>(bytes + tables.lengths_at());
    for (int64_t slot = 0; slot <= slots; ++slot) {
      const auto begin = static_cast<int64_t>(bounds[static_cast<size_t>(std::min(slot, documents))]);
      const auto offset = [&](RaggedRows rows) {
        return reinterpret_cast<const int64_t*>(bytes + tables.offsets_at(rows))[slot];
      };
      same = same && offset(kQkvRows) == begin * 64 && offset(kQueryRows) == begin * 32 &&
             offset(kKeyRows) == begin * 16 && offset(kLseRows) == begin * 4;
      if (slot < slots) same = same && lengths[slot] == (slot < documents ? slot * slot % 7 : 0);
    }
    CHECK(same);
    CHECK(memory.values().back() == -1);
  }
}
