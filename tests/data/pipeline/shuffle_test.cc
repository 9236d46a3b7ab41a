// Documents come out of a shuffle once each, in an order that depends on the seed alone.
#include "data/pipeline/shuffle.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/error.h"
#include "base/strings.h"
#include "data/dataset.h"
#include "data/shard_reader.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

constexpr int kDocuments = 300;

std::vector<int32_t> document(int number) {
  std::vector<int32_t> ids(static_cast<size_t>(number % 7), number % 50);
  ids.push_back(number);
  return ids;
}

// The last ids of the documents, which are their numbers, shard by shard.
std::vector<std::vector<int32_t>> shuffled(int64_t seed, int64_t vocab, int64_t run_memory, int64_t merge_memory,
                                           uint64_t shards) {
  const TempDir dir;
  std::vector<RunFile> runs;
  for (size_t part = 0; part < 3; ++part) {
    RunWriter writer(dir.file(str("p", part)), token_type_for(vocab), run_memory);
    for (int number = 0; number < kDocuments; ++number)
      if (number % 3 == static_cast<int>(part)) writer.add(shuffle_key(seed, part, number), document(number), 10);
    writer.finish();
  }
  for (const std::string& name : list_directory(dir.path(), Kind::kData)) runs.emplace_back(dir.file(name));
  std::vector<std::vector<int32_t>> out;
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const std::string directory = dir.file(str("shard", shard));
    make_directories(directory, Kind::kData);
    Manifest head;
    head.vocab_size = vocab;
    DatasetWriter writer(directory, head, INT64_MAX);
    merge_runs(runs, key_span(shard, shards), merge_memory, writer);
    const Manifest manifest = writer.finish();
    CHECK(manifest.text_bytes == 10 * manifest.documents());
    const InputFile bin(directory + "/part-00000.bin", Kind::kData);
    out.emplace_back();
    std::vector<int32_t> ids(static_cast<size_t>(manifest.tokens()));
    if (manifest.token_type == TokenType::kUint16) {
      std::vector<uint16_t> narrow(ids.size());
      bin.read_at(bin.size() - 2 * std::ssize(ids), std::as_writable_bytes(std::span(narrow)));
      ids.assign(narrow.begin(), narrow.end());
    } else {
      bin.read_at(bin.size() - 4 * std::ssize(ids), std::as_writable_bytes(std::span(ids)));
    }
    out.back() = ids;
  }
  return out;
}

}  // namespace

TEST_CASE("the order depends on neither memory nor the type of the tokens") {
  constexpr int64_t kMuch = int64_t{1} << 30;
  const auto whole = shuffled(1, 1000, kMuch, kMuch, 1);
  CHECK(shuffled(1, 1000, 200, kMuch, 1) == whole);
  CHECK(shuffled(1, 1000, kMuch, 500, 1) == whole);
  CHECK(shuffled(1, 70'000, 300, 700, 1) == whole);
  CHECK(shuffled(2, 1000, kMuch, kMuch, 1) != whole);
  std::vector<int32_t> joined;
  for (const auto& shard : shuffled(1, 1000, 200, 500, 4)) joined.insert(joined.end(), shard.begin(), shard.end());
  CHECK(joined == whole.front());
}

TEST_CASE("each document comes out once, and far from its place") {
  const std::vector<int32_t> ids = shuffled(7, 1000, 400, 400, 1).front();
  std::multiset<int32_t> found(ids.begin(), ids.end()), expected;
  for (int number = 0; number < kDocuments; ++number)
    for (const int32_t id : document(number)) expected.insert(id);
  CHECK(found == expected);
  int64_t neighbours = 0;
  for (size_t i = 1; i < ids.size(); ++i) neighbours += ids[i] == ids[i - 1] + 1 ? 1 : 0;
  CHECK(neighbours < 20);  // in order there would be about 300
}

TEST_CASE("spans of keys cover every key once") {
  for (const uint64_t count : {1, 2, 3, 7, 1000}) {
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const KeySpan span = key_span(i, count);
      CHECK(span.first == next);
      CHECK(span.last >= span.first);
      next = span.last + 1;
    }
    CHECK(next == 0);  // after the greatest key
  }
}

TEST_CASE("the share that is held out is the one asked for, and independent of the order") {
  constexpr int kMany = 100'000;
  int held = 0, held_low = 0, low = 0;
  for (int i = 0; i < kMany; ++i) {
    const uint64_t key = shuffle_key(3, 5, i);
    const bool is_held = is_held_out(key, 0.1);
    held += is_held ? 1 : 0;
    if (key < UINT64_MAX / 2) ++low, held_low += is_held ? 1 : 0;
  }
  CHECK(held == Approx(0.1 * kMany).epsilon(0.05));  // 5 standard deviations are 0.047
  CHECK(held_low == Approx(0.1 * low).epsilon(0.07));
  CHECK_FALSE(is_held_out(shuffle_key(1, 1, 1), 0));
}

TEST_CASE("a damaged run is an error with its path") {
  const TempDir dir;
  RunWriter writer(dir.file("p"), TokenType::kUint16, 1 << 20);
  writer.add(5, document(3), 1);
  writer.finish();
  const std::string path = dir.file("p-part-00000.run");
  const std::string bytes = read_text(path, Kind::kData);
  write_text_atomically(path, bytes.substr(0, bytes.size() - 1), Kind::kData);
  CHECK_THROWS_WITH(RunFile(path), Catch::Contains("part-00000.run is damaged"));
}
