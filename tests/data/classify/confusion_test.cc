// Precision, recall and thresholds, by hand.
#include "data/classify/confusion.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace tokamak;

TEST_CASE("precision, recall and accuracy are those of the matrix") {
  Confusion confusion;
  for (int i = 0; i < 6; ++i) confusion.add("good", "good");
  for (int i = 0; i < 2; ++i) confusion.add("good", "bad");
  for (int i = 0; i < 3; ++i) confusion.add("bad", "good");
  confusion.add("bad", "bad");
  confusion.add("other", "bad");
  CHECK(confusion.labels() == std::vector<std::string>{"bad", "good", "other"});
  CHECK(confusion.count("good", "bad") == 2);
  CHECK(confusion.count("bad", "other") == 0);
  CHECK(confusion.accuracy() == Approx(7.0 / 13));
  CHECK(confusion.precision("good") == Approx(6.0 / 9));
  CHECK(confusion.recall("good") == Approx(6.0 / 8));
  CHECK(confusion.precision("bad") == Approx(1.0 / 4));
  CHECK(confusion.recall("bad") == Approx(1.0 / 4));
  CHECK(std::isnan(confusion.precision("other")));
  CHECK(confusion.recall("other") == 0);
}

TEST_CASE("a threshold keeps the texts from its score on") {
  const std::vector<ScoredText> texts = {{0.9, true}, {0.8, false}, {0.5, true}, {0.4, true}, {0.1, false}};
  const Threshold at = at_threshold(texts, 0.5);
  CHECK(at.kept == 3);
  CHECK(at.precision == Approx(2.0 / 3));
  CHECK(at.recall == Approx(2.0 / 3));
  CHECK(std::isnan(at_threshold(texts, 1).precision));
}
