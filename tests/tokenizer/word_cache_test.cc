#include "tokenizer/word_cache.h"

#include <catch2/catch.hpp>

#include "base/strings.h"

using namespace tokamak;

TEST_CASE("the word cache returns what was put in, and nothing else") {
  WordCache cache(1024);
  CHECK_FALSE(cache.find("word"));
  cache.insert("word", std::vector<int32_t>{1, 2, 3});
  cache.insert("wor", std::vector<int32_t>{});
  REQUIRE(cache.find("word"));
  CHECK(std::vector<int32_t>(cache.find("word")->begin(), cache.find("word")->end()) == std::vector<int32_t>{1, 2, 3});
  CHECK(cache.find("wor")->empty());
  CHECK_FALSE(cache.find("wo"));
}

TEST_CASE("the word cache keeps all its words while it grows") {
  WordCache cache(1 << 14);
  for (int32_t i = 0; i < 10000; ++i) cache.insert(str("w", i), std::vector<int32_t>{i});
  CHECK(cache.size() == 10000);
  for (int32_t i = 0; i < 10000; ++i) {
    REQUIRE(cache.find(str("w", i)));
    CHECK(cache.find(str("w", i))->front() == i);
  }
}

TEST_CASE("the word cache stays within its bound and forgets rather than errs") {
  WordCache cache(16);
  for (int32_t i = 0; i < 1000; ++i) {
    const std::string word = str("w", i);
    cache.insert(word, std::vector<int32_t>{i});
    CHECK(cache.size() <= 16);
    CHECK(cache.bytes() < 2000);
    REQUIRE(cache.find(word));
    CHECK(cache.find(word)->front() == i);
  }
  for (int32_t i = 0; i < 1000; ++i) {
    const auto found = cache.find(str("w", i));
    if (found) CHECK(found->front() == i);
  }
  CHECK_FALSE(cache.find("w0"));
}
