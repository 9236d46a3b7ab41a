// Best-fit packing loses no token, wastes little, and is a table that a checkpoint is tied to.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/hash.h"
#include "data/loader.h"
#include "data/order/best_fit.h"
#include "data/order/pack_table.h"
#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t T = 16;

DataOptions packed(SampleOrder order = SampleOrder::kShuffled) {
  DataOptions options = data_options(T, order);
  options.packing = Packing::kBestFit;
  return options;
}

PackReport pack(const std::string& directory, int64_t length = T) {
  FilePool pool;
  return pack_dataset(open_dataset(directory, 65000, pool), length, {});
}

// The positions in each row of a best fit without data structures, sorted. Which of equally full rows gets a piece
// changes none of them.
std::vector<int64_t> slow_best_fit(std::vector<int64_t> lengths, int64_t room) {
  std::stable_sort(lengths.begin(), lengths.end(), std::greater<>());
  std::vector<int64_t> rows;
  for (const int64_t length : lengths) {
    int64_t* best = nullptr;
    for (int64_t& filled : rows) {
      if (filled + length <= room && (best == nullptr || filled > *best)) best = &filled;
    }
    best == nullptr ? rows.push_back(length) : void(*best += length);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

TEST_CASE("a sorted set finds what a search finds") {
  std::mt19937 random(5);
  for (const int64_t size : {1, 63, 64, 65, 4096, 4097, 300'000}) {
    SortedSet set(size);
    std::set<int64_t> plain;
    for (int i = 0; i < 2000; ++i) {
      const auto value = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
      if (random() % 3 != 0) {
        set.insert(value);
        plain.insert(value);
      } else {
        set.erase(value);
        plain.erase(value);
      }
      const auto bound = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
      const auto found = plain.lower_bound(bound);
      REQUIRE(set.first_from(bound) == (found == plain.end() ? -1 : *found));
    }
  }
}

TEST_CASE("each piece goes into the fullest row that fits") {
  std::mt19937 random(9);
  for (const int64_t room : {1, 7, 64, 100, 130}) {
    BestFit best_fit(room);
    for (int round = 0; round < 4; ++round) {  // rows left over from one call are not filled by the next
      std::vector<TokenRange> pieces;
      std::vector<int64_t> lengths;
      for (int i = 0; i < 400; ++i) {
        lengths.push_back(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(room)));
        pieces.push_back({1000 * i, lengths.back()});
      }
      std::vector<int64_t> rows;
      std::set<int64_t> seen;
      best_fit.pack(pieces, [&](std::span<const TokenRange> row) {
        rows.push_back(0);
        for (const TokenRange& piece : row) {
          rows.back() += piece.count;
          CHECK(seen.insert(piece.first).second);
        }
      });
      std::sort(rows.begin(), rows.end());
      CHECK(seen.size() == pieces.size());
      CHECK(rows == slow_best_fit(lengths, room));
    }
  }
}

TEST_CASE("in an epoch of packed rows, every token but each document's first is a target exactly once") {
  const TempDir dir;
  Documents documents = numbered_documents(700, 70);  // of 1 to 70 tokens, in rows of 16
  documents.push_back({});
  documents.push_back(std::vector<int32_t>(3 * T + 1, 60));  // three full rows
  write_dataset(dir.path(), documents, {65000, 1000});
  const PackReport report = pack(dir.path());
  const SampleSource source(packed(), std::vector<SourceOptions>{{dir.path()}}, 3, 65000);
  REQUIRE(source.windows(0) == report.rows);

  std::map<std::pair<int32_t, int32_t>, int64_t> expected, found;  // token and target, whose ids count up
  int64_t positions = 0;
  for (const auto& document : documents) {
    for (size_t i = 0; i + 1 < document.size(); ++i) ++expected[{document[i], document[i + 1]}];
    positions += std::max<int64_t>(std::ssize(document) - 1, 0);
  }
  CHECK(report.positions == positions);
  CHECK(report.rows < positions / T * 11 / 10);  // little waste

  Sample sample;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    found.clear();
    for (int64_t row = 0; row < report.rows; ++row) {
      source.read(epoch * report.rows + row, sample);
      REQUIRE(std::ssize(sample.tokens) == T + 1);
      REQUIRE(std::ssize(sample.targets) == T);
      REQUIRE(sample.document_starts.front() == 0);
      int64_t pieces = 0;
      for (const TokenRange& range : sample.ranges) pieces += range.count - 1;
      for (int64_t t = 0; t < T; ++t) {
        REQUIRE((sample.targets[t] < 0) == (t >= pieces));
        if (t < pieces) ++found[{sample.tokens[t], sample.targets[t]}];
        if (t >= pieces) REQUIRE(sample.tokens[t] == kEos);
      }
      const bool padded = pieces < T;
      REQUIRE(sample.document_starts.size() == sample.ranges.size() + padded);
      if (padded) REQUIRE(sample.document_starts.back() == pieces);
    }
    CHECK(found == expected);
  }

  Loader loader(source, {.rank = 0, .ranks = 1, .micro_batch = 4, .samples_per_step = 4});
  for (int i = 0; i < 20; ++i) {
    const MicroBatch& batch = loader.next();
    for (int64_t b = 0; b < 4; ++b) {
      source.read(batch.first_sample + b, sample);
      REQUIRE(std::equal(sample.targets.begin(), sample.targets.end(), batch.targets.begin() + b * T));
    }
  }
}

TEST_CASE("a table is the same bytes each time, is tied to its data and length, and a checkpoint to it") {
  const TempDir dir;
  write_dataset(dir.file("a"), numbered_documents(300, 30));
  write_dataset(dir.file("b"), numbered_documents(301, 30));
  const std::vector<SourceOptions> sources = {{dir.file("a")}};
  const std::string path = dir.file("a") + "/pack-16.tbl";
  check_fails(Kind::kData, {"best_fit", "there is no " + path}, [&] { SampleSource(packed(), sources, 1, 65000); });
  pack(dir.file("a"));
  const std::string text = read_text(path, Kind::kData);
  pack(dir.file("a"));
  CHECK(read_text(path, Kind::kData) == text);
  for (const std::string& name : list_directory(dir.file("a"), Kind::kData)) {
    CHECK(name.find("tmp") == std::string::npos);
  }
  const SampleSource source(packed(), sources, 1, 65000);
  CHECK(SampleSource(packed(), sources, 1, 65000).restore(source.state_json(9)) == 9);
  const SampleSource windows(data_options(T), sources, 1, 65000);
  check_fails(Kind::kData, {"data.packing", "null"}, [&] { windows.restore(source.state_json(9)); });

  write_text_atomically(dir.file("b") + "/pack-16.tbl", text, Kind::kData);
  check_fails(Kind::kData, {"pack-16.tbl packs data set " + source.dataset(0).id()},
              [&] { SampleSource(packed(), std::vector<SourceOptions>{{dir.file("b")}}, 1, 65000); });
  write_text_atomically(dir.file("a") + "/pack-32.tbl", text, Kind::kData);
  DataOptions longer = packed();
  longer.sequence_length = 32;
  check_fails(Kind::kData, {"rows of 16", "sequence_length is 32"}, [&] { SampleSource(longer, sources, 1, 65000); });
  check_fails(Kind::kConfig, {"best_fit", "megatron"},
              [&] { SampleSource(packed(SampleOrder::kMegatron), sources, 1, 65000, 10); });
}

TEST_CASE("every damaged byte of a table is found, at the start or when the row is read") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(40, 30));
  const PackReport report = pack(dir.path());
  const std::string path = pack_table_path(dir.path(), T);
  const std::string text = read_text(path, Kind::kData);
  Sample sample;
  const auto read_all = [&] {
    const SampleSource source(packed(), std::vector<SourceOptions>{{dir.path()}}, 3, 65000);
    for (int64_t row = 0; row < report.rows; ++row) source.read(row, sample);
  };
  CHECK_NOTHROW(read_all());
  for (size_t at = 0; at < text.size(); at += 7) {
    damage(path, static_cast<int64_t>(at));
    INFO("byte " << at);
    check_fails(Kind::kData, {"pack-16.tbl"}, read_all);
    damage(path, static_cast<int64_t>(at));
  }
  for (const size_t length : {size_t{0}, size_t{10}, size_t{80}, text.size() - 1}) {
    write_text_atomically(path, text.substr(0, length), Kind::kData);
    check_fails(Kind::kData, {"pack-16.tbl is damaged"}, read_all);
  }
}
