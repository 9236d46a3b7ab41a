// The trace of a value in a packed row.
#include "train/plant.h"

#include <catch2/catch.hpp>
#include <optional>

#include "data/order/pack_table.h"
#include "tests/data/fixture.h"

using namespace tokamak;
using Catch::Contains;

namespace {

constexpr int64_t kLength = 16, kWidth = 40;  // of a sequence, and of SwiGLU's output

// The event of a run whose rows have documents of so many tokens, of which the last is no position. From step 4 on,
// SwiGLU writes NaN at a position of the third row.
RunEvent traced_at(const ToyPlace& place, int64_t document, int64_t position) {
  const std::string name = str("documents-", document, "-", position);
  Documents documents(300, std::vector<int32_t>(static_cast<size_t>(document), 5));
  for (auto& one : documents) one.back() = kEos;
  write_dataset(place.file(name), documents, {.vocab_size = 61});
  FilePool pool;
  pack_dataset(open_dataset(place.file(name), 1 << 20, pool), kLength, {});
  RunConfig config = place.config(name);
  config.data.sources = {{place.file(name)}};
  config.data.validation.clear();
  config.data.packing = Packing::kBestFit;
  std::optional<Plant> plant;
  train(1, config, after_step_3(config, 0, [&](Engine& engine) {
          Device& device = *engine.backend().device;
          plant.emplace(device, Plant::Place{"swiglu", {"forward", 1}, "out", kNaN, (2 * kLength + position) * kWidth});
          device.observe(*plant);
        }));
  return last_event(place.run(name), "non_finite").event.value();
}

}  // namespace

TEST_CASE("a value in a packed row is traced to its document, and in the row's padding to none") {
  const ToyPlace place;
  for (const int64_t document : {6, 12}) {  // three in a row, and one
    const int64_t positions = 15 / (document - 1) * (document - 1);
    INFO(document << " tokens, " << positions << " positions of documents in a row");
    const RunEvent last = traced_at(place, document, positions - 1), padding = traced_at(place, document, positions);
    const int64_t of_row = 15 / (document - 1);
    CHECK(last.text("document") == str(of_row, " of ", of_row + 1, " in the sample"));
    CHECK_THAT(last.text("sample"), Contains(", token "));
    CHECK_THAT(padding.text("sample"), Catch::StartsWith("38 of ") && Catch::EndsWith(", in its padding"));
    CHECK(padding.text("document").empty());
  }
}
