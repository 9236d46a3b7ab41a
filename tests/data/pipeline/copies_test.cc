// One document of each cluster of copies stays, and it says how many there were.
#include "data/pipeline/copies.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "data/pipeline/stages.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

using Parts = std::vector<std::vector<std::string>>;  // texts

struct Found {
  Parts kept;
  std::vector<int64_t> sizes;  // of the clusters of kept documents, in order
  PrepareCounts counts;
};

Found without_copies(const PrepareStage& stage, const Parts& parts, uint64_t ranges = 1,
                     const std::vector<double>& scores = {}) {
  const TempDir dir;
  std::vector<BandFile> files;
  size_t score = 0;
  const auto document_of = [&](const std::string& text) {
    Document document;
    document.text = text;
    if (!scores.empty()) set_value(document, "score", scores.at(score++));
    return document;
  };
  BandRule rule;
  int64_t bands = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    CopyKeys keys(stage);
    rule = keys.rule(), bands = keys.bands();
    for (const std::string& text : parts[part]) keys.add(document_of(text));
    keys.write(dir.file(str("keys", part)));
    files.emplace_back(dir.file(str("keys", part)));
  }
  std::vector<std::string> pairs;
  for (int64_t band = 0; band < bands; ++band)
    for (uint64_t range = 0; range < ranges; ++range) {
      pairs.push_back(dir.file(str("pairs-", band, "-", range)));
      write_pairs(files, band, {range, ranges}, rule, pairs.back());
    }
  write_copies(stage, files, pairs, dir.path());
  Found found;
  for (size_t part = 0; part < parts.size(); ++part) {
    CopyFilter filter(stage, copies_file(dir.path(), part));
    found.kept.emplace_back();
    for (const std::string& text : parts[part]) {
      Document document;
      document.text = text;
      if (!filter.keep(document, found.counts)) {
        CHECK_FALSE(document.reason.empty());
        continue;
      }
      CHECK(document.reason.empty());
      found.kept.back().push_back(document.text);
      for (const DocumentValue& value : document.values) found.sizes.push_back(static_cast<int64_t>(value.value));
    }
  }
  return found;
}

std::string text_of_words(int first, int count) {
  std::string out;
  for (int i = first; i < first + count; ++i) {  // numbers would count as equal
    for (int rest = i * 7919 % 10'007 + 1; rest > 0; rest /= 26) out += static_cast<char>('a' + rest % 26);
    out += ' ';
  }
  return out;
}

}  // namespace

TEST_CASE("equal documents are one, for any number of ranges of keys") {
  for (const uint64_t ranges : {1, 8}) {
    const Found found = without_copies(ExactStage{}, {{"a", "b", "a"}, {"c", "b", " "}, {"a", " "}}, ranges);
    CHECK(found.kept == Parts{{"a", "b"}, {"c", " "}, {" "}});  // blank texts are no copies
    CHECK(found.sizes == std::vector<int64_t>{3, 2});
  }
}

TEST_CASE("short documents are not compared if asked for") {
  CHECK(without_copies(ExactStage{.least_bytes = 3}, {{"ab", "ab", "abc", "abc"}}).kept == Parts{{"ab", "ab", "abc"}});
}

TEST_CASE("a repeated paragraph stays in its first document, and a document of none goes") {
  const Found found = without_copies(ExactStage{.unit = CopyUnit::kParagraphs, .least_bytes = 3},
                                     {{"one\ntwo\nhi", "own\none\nhi"}, {"two\n\none", "two\nnew\n\nnew"}});
  CHECK(found.kept == Parts{{"one\ntwo\nhi", "own\nhi"}, {"new"}});
  REQUIRE(found.counts.removals().count("exact.paragraph") == 1);
  CHECK(found.counts.removals().at("exact.paragraph").documents == 5);
}

TEST_CASE("near copies are one, and the longest stays") {
  const std::string text = text_of_words(0, 400), other = text_of_words(1000, 400);
  const std::string near = text + text_of_words(5000, 10);
  for (const PrepareStage& stage :
       {PrepareStage(MinHashStage{}), PrepareStage(SimHashStage{.options = {.distance = 8}})}) {
    INFO(name_of(stage));
    const Found found = without_copies(stage, {{text, other}, {near}});
    CHECK(found.kept == Parts{{other}, {near}});
    CHECK(found.sizes == std::vector<int64_t>{2});
  }
}

TEST_CASE("a stored value may decide which copy stays") {
  const std::vector<double> scores = {0.25, 0.5, 0.125, 7};
  CHECK(without_copies(ExactStage{.best_by = "score"}, {{"a", "a", "a"}, {"b"}}, 1, scores).sizes ==
        std::vector<int64_t>{3});
  const Found found = without_copies(MinHashStage{.best_by = "score"},
                                     {{text_of_words(0, 300) + "tail", text_of_words(0, 300)}}, 1, {1, 2});
  CHECK(found.kept == Parts{{text_of_words(0, 300)}});
}
