#include "interop/export_gguf.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("interleaved rows come from both halves of a head") {
  // hd 4: GGUF's rows 0, 1, 2, 3 of a head are rows 0, 2, 1, 3 of Hugging Face's.
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 8; ++row) rows.push_back(half_split_row(row, 4));
  CHECK(rows == std::vector<int64_t>{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("a weight beyond F16 is an error that names it, in one of its pieces") {
  const ReadParam read = [](const std::string&, int64_t first, std::span<float> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<int64_t>(i) == 1'500'000 ? 65520.0f : 1.0f;
  };
  int64_t bytes = 0;
  const auto sink = [&](std::span<const std::byte> piece) { bytes += static_cast<int64_t>(piece.size()); };
  WeightStream stream(read, nullptr, 0);
  stream.copy("w", 1'500'000, WeightType::kF16, sink);
  CHECK(bytes == 3'000'000);
  CHECK_THROWS_WITH(stream.copy("w", 1'500'001, WeightType::kF16, sink), Catch::Contains("'w' has the value 65520"));
  stream.copy("w", 1'500'001, WeightType::kBF16, sink);
}
