// The fast byte-level BPE against the definition of merging, on random models.
#include "tokenizer/bpe/byte_bpe.h"

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.h"
#include "base/printable.h"
#include "random_bpe.h"

using namespace tokamak;

namespace {

// One piece for each byte, and merges of the others.
ByteBpeModel model_of(const std::vector<std::pair<std::string, std::string>>& merges) {
  ByteBpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.pieces.emplace_back(1, static_cast<char>(byte));
  const auto id_of = [&](const std::string& piece) {
    const auto found = std::find(model.pieces.begin(), model.pieces.end(), piece);
    if (found != model.pieces.end()) return static_cast<int32_t>(found - model.pieces.begin());
    model.pieces.push_back(piece);
    return static_cast<int32_t>(model.pieces.size()) - 1;
  };
  for (const auto& [left, right] : merges) {
    model.merges.push_back(
        {static_cast<uint32_t>(model.merges.size()), id_of(left), id_of(right), id_of(left + right)});
  }
  return model;
}

std::string error_of(const ByteBpeModel& model) {
  try {
    ByteBpe bpe(model, "t.json");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kData);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("random byte-level models encode random text as the definition says, with caches of any size") {
  std::mt19937_64 random(5);
  for (int m = 0; m < 200; ++m) {
    const ByteBpeModel model = random_bpe_model(random);
    const NaiveBpe naive(model);
    const ByteBpe bpe(model, "test");
    ByteBpeEncoder encoder(bpe, {.short_entries = int64_t{2} << random() % 4 * 3,
                                 .long_bytes = static_cast<int64_t>(random() % 3 * 20000)});
    for (int t = 0; t < 12; ++t) {
      const std::string text = random_bpe_text(random, random() % (t % 4 == 0 ? 1000 : 60));
      std::vector<int32_t> ids = {-7};
      std::vector<int32_t> expected = naive.encode(text);
      expected.insert(expected.begin(), -7);
      encoder.encode(text, SpaceScanner(), ids);
      if (ids != expected) FAIL("model " << m << " encodes differently: " << printable(text, 2000));
      ids.clear();
      encoder.encode_pretoken(text, ids);
      if (ids != naive.merge(text)) FAIL("model " << m << " merges differently: " << printable(text, 2000));
    }
  }
}

TEST_CASE("two threads encode with one byte-level model") {
  std::mt19937_64 random(7);
  const ByteBpeModel model = random_bpe_model(random);
  const ByteBpe bpe(model, "test");
  const std::string text = random_bpe_text(random, 3000);
  const std::vector<int32_t> expected = NaiveBpe(model).encode(text);
  std::vector<std::vector<int32_t>> ids(2);
  std::vector<std::thread> threads;
  for (std::vector<int32_t>& mine : ids) {
    threads.emplace_back([&] { ByteBpeEncoder(bpe).encode(text, SpaceScanner(), mine); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ids[0] == expected);
  CHECK(ids[1] == expected);
}

TEST_CASE("a pretoken of any bytes is merged as the definition says") {
  std::mt19937_64 random(6);
  for (int m = 0; m < 40; ++m) {
    const ByteBpeModel model = random_bpe_model(random);
    const NaiveBpe naive(model);
    const ByteBpe bpe(model, "test");
    ByteBpeEncoder encoder(bpe);
    for (int t = 0; t < 20; ++t) {
      std::string text = random_bpe_text(random, random() % 40);
      for (char& byte : text) {
        if (random() % 10 == 0) byte = static_cast<char>(random() % 256);
      }
      std::vector<int32_t> ids;
      encoder.encode_pretoken(text, ids);
      if (ids != naive.merge(text)) FAIL("model " << m << " merges differently: " << printable(text, 2000));
    }
  }
}

TEST_CASE("a chunk of long pretokens, and then of short ones, may have one id per byte") {
  const ByteBpeModel model = model_of({});
  const ByteBpe bpe(model, "test");
  ByteBpeEncoder encoder(bpe);
  std::string text;
  for (int i = 0; i < 64; ++i) text += " " + std::string(95, 'x');
  for (int i = 0; i < 192; ++i) text += " " + std::string(14, 'y');
  for (int pass = 0; pass < 2; ++pass) {  // the second one reads the caches
    std::vector<int32_t> ids;
    encoder.encode(text, SpaceScanner(), ids);
    CHECK(ids == NaiveBpe(model).encode(text));
  }
}

TEST_CASE("a run of one byte, of any length, merges from the left") {
  const ByteBpeModel model = model_of({{"a", "a"}, {"aa", "aa"}, {"aa", "a"}, {"aaaa", "aaaa"}});
  const NaiveBpe naive(model);
  const ByteBpe bpe(model, "test");
  ByteBpeEncoder encoder(bpe);
  for (size_t length = 0; length < 140; ++length) {
    std::vector<int32_t> ids;
    encoder.encode_pretoken(std::string(length, 'a'), ids);
    if (ids != naive.merge(std::string(length, 'a'))) FAIL(length << " times a");
  }
}

TEST_CASE("16 MiB of one byte are merged", "[large]") {
  const ByteBpe bpe(model_of({{"a", "a"}, {"aa", "aa"}, {"aa", "a"}, {"aaaa", "aaaa"}}), "test");
  ByteBpeEncoder encoder(bpe);
  const size_t bytes = (size_t{16} << 20) + 3;
  std::vector<int32_t> ids;
  encoder.encode(std::string(bytes, 'a'), SpaceScanner(), ids);
  REQUIRE(ids.size() == bytes / 8 + 1);
  CHECK(std::all_of(ids.begin(), ids.end() - 1, [](int32_t id) { return id == 259; }));
  CHECK(ids.back() == 258);
}

TEST_CASE("a byte-level model that contradicts itself is refused") {
  ByteBpeModel model = model_of({{"a", "b"}, {"ab", "c"}});
  CHECK(error_of(model) == "");
  model.merges[1].result = 256;
  CHECK(error_of(model) == "t.json: the merge of rank 1 makes 256 (ab) of 256 (ab) and 99 (c)");
  model.merges[1].result = 258;
  CHECK(error_of(model) == "t.json: the merge of rank 1 has the id 258, which is not in the vocabulary of 258");
  model = model_of({{"a", "b"}, {"ab", "c"}});
  model.merges[1].rank = 0;
  CHECK(error_of(model) == "t.json: two merges of rank 0 have different results, 256 (ab) and 257 (abc)");
  model.pieces['q'] = "";
  model.merges[1].rank = 1;
  CHECK(error_of(model) == "t.json: the byte 113 is no piece of the vocabulary");
}
