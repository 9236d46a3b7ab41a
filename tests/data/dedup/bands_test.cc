// Documents with a common key are found in any number of parts and ranges, and of each cluster one is kept.
#include "data/dedup/bands.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "data/dedup/clusters.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

struct Keyed {
  std::vector<BandKey> keys;
  uint32_t weight = 1;
};

// Writes the documents to files of `per_part` documents each.
std::vector<BandFile> written(const TempDir& dir, const std::vector<Keyed>& documents, size_t per_part, int64_t bands) {
  std::vector<BandFile> parts;
  for (size_t begin = 0; begin < documents.size(); begin += per_part) {
    BandWriter writer(bands);
    for (size_t i = begin; i < std::min(begin + per_part, documents.size()); ++i)
      writer.add(documents[i].keys, documents[i].weight);
    const std::string path = dir.file(str("part-", per_part, "-", begin));
    writer.write(path);
    parts.emplace_back(path);
  }
  return parts;
}

std::vector<DocumentPair> pairs_of(const std::vector<BandFile>& parts, const BandRule& rule, uint64_t ranges,
                                   int64_t bands = 1) {
  std::vector<DocumentPair> pairs;
  for (int64_t band = 0; band < bands; ++band)
    for (uint64_t range = 0; range < ranges; ++range)
      find_pairs(parts, band, {range, ranges}, rule, [&](DocumentPair pair) { pairs.push_back(pair); });
  return pairs;
}

// For each document the number of the one that is kept of its cluster, over all parts; -1: it is in none.
std::vector<int64_t> kept(const std::vector<BandFile>& parts, const std::vector<DocumentPair>& pairs, size_t per_part) {
  std::vector<int64_t> counts;
  std::vector<std::vector<uint32_t>> weights;
  for (const BandFile& part : parts) {
    counts.push_back(part.documents());
    weights.push_back(part.weights());
  }
  Clusters clusters(counts);
  for (const DocumentPair& pair : pairs) clusters.join(pair);
  std::vector<int64_t> out(counts.size() * per_part, -1);
  const auto number = [&](DocumentId id) { return id.part * per_part + id.number; };
  for (const ClusterMember& member : clusters.members(weights))
    out[number(member.document)] = static_cast<int64_t>(number(member.kept));
  return out;
}

constexpr uint64_t kHigh = uint64_t{1} << 63;

}  // namespace

TEST_CASE("documents that share a key in any band are one cluster, across parts and ranges") {
  const TempDir dir;
  // 0 and 3 share band 0, 3 and 5 band 1; 1 and 4 share band 0; 2 shares nothing, 6 has no keys.
  const std::vector<Keyed> documents = {{{{7, 1}, {100, 0}}, 10},
                                        {{{kHigh, 2}, {101, 0}}, 5},
                                        {{{8, 1}, {102, 0}}, 99},
                                        {{{7, 1}, {103, 0}}, 30},
                                        {{{kHigh, 2}, {104, 0}}, 5},
                                        {{{9, 1}, {103, 0}}, 20},
                                        {{}, 50}};
  const std::vector<int64_t> expected = {3, 1, -1, 3, 1, 3, -1};
  for (const size_t per_part : {1, 2, 3, 7}) {
    const std::vector<BandFile> parts = written(dir, documents, per_part, 2);
    for (const uint64_t ranges : {1, 2, 64}) {
      INFO(per_part << " documents a part, " << ranges << " ranges");
      std::vector<int64_t> found = kept(parts, pairs_of(parts, {}, ranges, 2), per_part);
      found.resize(documents.size());
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a key has 128 bits: those that agree in the first 64 alone are no pair") {
  const TempDir dir;
  const std::vector<BandFile> parts = written(dir, {{{{7, 1}}}, {{{7, 2}}}, {{{7, 2}}}}, 3, 1);
  const std::vector<DocumentPair> pairs = pairs_of(parts, {}, 1);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].first == DocumentId{0, 1});
  CHECK(pairs[0].second == DocumentId{0, 2});
}

TEST_CASE("with a distance, documents of equal prefixes are pairs if few of all bits differ") {
  const TempDir dir;
  const uint64_t prefix = uint64_t{0xABCD} << 48;
  const std::vector<Keyed> documents = {
      {{{prefix, 0}}}, {{{prefix | 7, 0}}}, {{{prefix | 15, 0}}}, {{{prefix ^ (uint64_t{1} << 50), 0}}}};
  const std::vector<BandFile> parts = written(dir, documents, 2, 1);
  const auto count = [&](const BandRule& rule) { return pairs_of(parts, rule, 16).size(); };
  CHECK(count({.prefix_bits = 16, .distance = 3}) == 2);  // 0 and 1, 1 and 2
  CHECK(count({.prefix_bits = 16, .distance = 4}) == 3);
  CHECK(count({.prefix_bits = 8, .distance = 1}) == 2);  // 1 and 2, 0 and 3
  CHECK(count({.prefix_bits = 16, .distance = 4, .longest_run = 1}) == 2);
}

TEST_CASE("many copies of one document make as many pairs as copies") {
  const TempDir dir;
  std::vector<Keyed> documents(1000, {{{7, 1}}});
  documents.push_back({{{7, 3}}});
  const std::vector<BandFile> parts = written(dir, documents, 300, 1);
  CHECK(pairs_of(parts, {.prefix_bits = 64, .distance = 1}, 4).size() == 1000);
  CHECK(pairs_of(parts, {}, 4).size() == 999);
}

TEST_CASE("a prefix may end in the second word of a key") {
  const TempDir dir;
  const uint64_t low = uint64_t{1} << 20, middle = uint64_t{1} << 40;  // bits 107 and 87 of a key
  const std::vector<BandFile> parts = written(dir, {{{{7, 0}}}, {{{7, low}}}, {{{7, middle}}}, {{{6, 0}}}}, 4, 1);
  CHECK(pairs_of(parts, {.prefix_bits = 100, .distance = 1}, 1).size() == 1);
  CHECK(pairs_of(parts, {.prefix_bits = 80, .distance = 1}, 1).size() == 2);
  CHECK(pairs_of(parts, {.prefix_bits = 80, .distance = 2}, 1).size() == 3);
}

TEST_CASE("keys at the borders of ranges are found once") {
  const TempDir dir;
  const std::vector<uint64_t> borders = {0, kHigh - 1, kHigh, UINT64_MAX};
  std::vector<Keyed> documents;
  for (const uint64_t border : borders)
    for (int copy = 0; copy < 2; ++copy) documents.push_back({{{border, 5}}});
  const std::vector<BandFile> parts = written(dir, documents, 3, 1);
  for (const uint64_t ranges : {1, 2, 8}) CHECK(pairs_of(parts, {}, ranges).size() == borders.size());
}

TEST_CASE("the order of the pairs does not change the clusters") {
  const std::vector<int64_t> counts = {4, 4};
  const std::vector<std::vector<uint32_t>> weights = {{1, 1, 9, 1}, {9, 1, 1, 1}};
  std::vector<DocumentPair> pairs = {{{0, 0}, {1, 3}}, {{0, 2}, {1, 3}}, {{0, 2}, {1, 0}}, {{0, 1}, {1, 1}}};
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  do {
    Clusters clusters(counts);
    for (const DocumentPair& pair : pairs) clusters.join(pair);
    const std::vector<ClusterMember> members = clusters.members(weights);
    REQUIRE(members.size() == 6);
    for (const ClusterMember& member : members) {
      const bool large = member.documents == 4;
      CHECK(member.kept == (large ? DocumentId{0, 2} : DocumentId{0, 1}));  // the first of equal weights
      CHECK((large || member.documents == 2));
    }
  } while (std::next_permutation(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  }));
}

TEST_CASE("a damaged file is an error that names it") {
  const TempDir dir;
  written(dir, {{{{7, 1}}}, {{{7, 2}}}}, 2, 1);
  const std::string path = dir.file("part-2-0");
  const std::string text = read_text(path, Kind::kData);
  for (const std::string& bad :
       {text.substr(0, text.size() - 1), text + "x", std::string("TKBANDS2") + text.substr(8), std::string()}) {
    std::ofstream(path, std::ios::binary) << bad;
    CHECK_THROWS_WITH(BandFile(path), Catch::Contains(path) && Catch::Contains("damaged"));
  }
}

TEST_CASE("ranges bound the memory of a search") {
  const TempDir dir;
  std::vector<Keyed> documents(1000, Keyed{{{1, 1}}});
  const std::vector<BandFile> parts = written(dir, documents, 100, 1);
  CHECK(ranges_for(parts, 1 << 20) == 1);
  CHECK(ranges_for(parts, 1 << 10) == 128);  // 3 * 24 bytes of 1000 records are 72 KB
}
