// A model learns labels from examples, and is the same file each time.
#include "data/classify/text_classifier.h"

#include <fasttext/fasttext.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::vector<LabelledText> examples() {
  const std::vector<std::pair<std::string, std::string>> sentences = {
      {"en", "the cat sits on the window and the dog lies at the door of the house"},
      {"en", "this is what they have said about the weather of the last week"},
      {"de", "die Katze sitzt am Fenster und der Hund liegt vor der T\u00fcr des Hauses"},
      {"de", "das ist es, was sie \u00fcber das Wetter der letzten Woche gesagt haben"},
      {"ru",
       "\u043a\u043e\u0448\u043a\u0430 \u0441\u0438\u0434\u0438\u0442 \u043d\u0430 \u043e\u043a\u043d\u0435, \u0430 \u0441\u043e\u0431\u0430\u043a\u0430 \u043b\u0435\u0436\u0438\u0442 \u0443 \u0434\u0432\u0435\u0440\u0438"},
      {"ru",
       "\u044d\u0442\u043e \u0442\u043e, \u0447\u0442\u043e \u043e\u043d\u0438 \u0441\u043a\u0430\u0437\u0430\u043b\u0438 \u043e \u043f\u043e\u0433\u043e\u0434\u0435"}};
  std::vector<LabelledText> out;
  for (int i = 0; i < 20; ++i)
    for (const auto& [label, text] : sentences) out.push_back({label, text});
  return out;
}

const ClassifierOptions kSmall = {.dimension = 8, .epochs = 20, .buckets = 2000};

}  // namespace

TEST_CASE("a trained model knows its languages, also in new sentences of several lines") {
  const TempDir dir;
  train_classifier(examples(), kSmall, dir.file("a.bin"));
  const TextClassifier classifier(dir.file("a.bin"));
  CHECK(classifier.best("the dog of the house\nhas said this").name == "en");
  CHECK(classifier.best("der Hund hat das gesagt").name == "de");
  CHECK(classifier.best("\u0441\u043e\u0431\u0430\u043a\u0430 \u0441\u0438\u0434\u0438\u0442").name == "ru");
  const std::vector<Label> labels = classifier.labels("the cat", 3);
  REQUIRE(labels.size() == 3);
  CHECK(labels[0].score > labels[1].score);
  CHECK(labels[0].score + labels[1].score + labels[2].score == Approx(1).margin(0.01));
}

TEST_CASE("the same examples give the same file, and nothing else is left") {
  const TempDir dir;
  train_classifier(examples(), kSmall, dir.file("a.bin"));
  train_classifier(examples(), kSmall, dir.file("b.bin"));
  CHECK(TextClassifier(dir.file("a.bin")).hash() == TextClassifier(dir.file("b.bin")).hash());
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.bin", "b.bin"});
}

TEST_CASE("a missing or damaged model is an error with its path") {
  const TempDir dir;
  CHECK_THROWS_WITH(TextClassifier(dir.file("none.bin")), Catch::Contains("none.bin"));
  write_text_atomically(dir.file("bad.bin"), "not a model at all", Kind::kData);
  CHECK_THROWS_WITH(TextClassifier(dir.file("bad.bin")), Catch::Contains("bad.bin is no model of fastText"));
}

TEST_CASE("a model that is cut anywhere is an error with the place, and so is one that is too long") {
  const TempDir dir;
  train_classifier(examples(), kSmall, dir.file("a.bin"));
  const std::string whole = read_text(dir.file("a.bin"), Kind::kData);
  for (size_t size = 0; size < whole.size(); size += 1 + size / 3) {
    INFO(size << " of " << whole.size());
    write_text_atomically(dir.file("cut.bin"), whole.substr(0, size), Kind::kData);
    CHECK_THROWS_AS(TextClassifier(dir.file("cut.bin")), Error);
    if (size >= 8)
      CHECK_THROWS_WITH(TextClassifier(dir.file("cut.bin")), Catch::Contains(str("is cut: it ends at byte ", size)));
  }
  write_text_atomically(dir.file("long.bin"), whole + "x", Kind::kData);
  CHECK_THROWS_WITH(TextClassifier(dir.file("long.bin")), Catch::Contains(str("has ", whole.size() + 1, " bytes")));
}

TEST_CASE("a quantized model is read") {
  const TempDir dir;
  std::vector<LabelledText> texts = examples();
  for (int i = 0; i < 300; ++i) texts.push_back({"en", str("word", i)});
  train_classifier(texts, kSmall, dir.file("a.bin"));
  fasttext::FastText model;
  model.loadModel(dir.file("a.bin"));
  for (const bool norms : {false, true}) {
    fasttext::Args args;
    args.qnorm = norms, args.dsub = 2;
    fasttext::FastText quantized;
    quantized.loadModel(dir.file("a.bin"));
    quantized.quantize(args);
    quantized.saveModel(dir.file("a.ftz"));
    CHECK(TextClassifier(dir.file("a.ftz")).best("the dog of the house").name == "en");
    const std::string whole = read_text(dir.file("a.ftz"), Kind::kData);
    write_text_atomically(dir.file("cut.ftz"), whole.substr(0, whole.size() - 1), Kind::kData);
    CHECK_THROWS_WITH(TextClassifier(dir.file("cut.ftz")), Catch::Contains("is cut"));
  }
}

TEST_CASE("words that mean something else to fastText are text") {
  const TempDir dir;
  train_classifier(examples(), kSmall, dir.file("a.bin"));
  const TextClassifier classifier(dir.file("a.bin"));
  const std::string german = "die Katze liegt vor der T\u00fcr des Hauses und das ist es, was sie gesagt haben";
  CHECK(classifier.best("the cat </s> " + german + " " + german).name == "de");
  std::vector<LabelledText> marked = examples();
  for (LabelledText& text : marked) text.text += " __label__x </s>";
  train_classifier(marked, kSmall, dir.file("b.bin"));
  CHECK(TextClassifier(dir.file("b.bin")).labels("the cat", 10).size() == 3);
  for (const std::string label : {"", "two words", "a\tb"})
    CHECK_THROWS_WITH(train_classifier({{label, "a"}, {"b", "c"}}, kSmall, dir.file("c.bin")),
                      Catch::Contains("is no word"));
}

TEST_CASE("one label is no choice") {
  const TempDir dir;
  CHECK_THROWS_WITH(train_classifier({{"en", "a"}, {"en", "b"}}, kSmall, dir.file("a.bin")),
                    Catch::Contains("needs two"));
}

TEST_CASE("texts sorted by their label are learnt as well") {
  const TempDir dir;
  std::vector<LabelledText> sorted;
  for (int label = 0; label < 20; ++label)  // each has a word of its own among those of all
    for (int i = 0; i < 200; ++i)
      sorted.push_back({str("l", label), str("a", i % 3, " b", i % 7, " w", label, " c", i % 5, " d", i % 11)});
  train_classifier(sorted, {.dimension = 8, .epochs = 3, .letters_from = 0, .letters_to = 0}, dir.file("a.bin"));
  const TextClassifier classifier(dir.file("a.bin"));
  int right = 0;
  for (const LabelledText& text : sorted) right += classifier.best(text.text).name == text.label ? 1 : 0;
  CHECK(right > std::ssize(sorted) * 9 / 10);  // 358 of 4,000 if they are taken in their order
}
