// Stages that look at one document: what each changes, stores and drops.
#include "data/pipeline/stages.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

Document document_of(const std::string& text, const std::string& language = "") {
  Document document;
  document.id = "d";
  document.text = text;
  document.language = language;
  return document;
}

// The document's reason after the stage; "": it is kept.
std::string run(const PrepareStage& stage, Document& document) {
  PrepareOptions options;
  options.stages = {stage};
  const StageMaker maker(options);
  document.reason.clear();
  const bool is_kept = maker.make(0)->run(document);
  CHECK(is_kept == document.reason.empty());
  return document.reason;
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string prose() {
  return "The boats of the town have gone out with the tide, and nobody waits for them.\n"
         "A letter that arrived on Monday says more about the harbour than any map.\n"
         "Its author describes seven streets, two bakeries and the old school on a hill.\n"
         "We read it twice before we believed what was written there.\n"
         "Children play between nets while their fathers mend engines until late evening.\n"
         "Nothing else has changed since spring, except the price of fish and bread.\n";
}

const ClassifierOptions kSmall = {.dimension = 8, .epochs = 30, .buckets = 2000};

}  // namespace

TEST_CASE("a page becomes its text, and one without text is dropped") {
  PrepareOptions options;
  const StageMaker maker(options);
  const auto stage = maker.make_extraction();
  Document page = document_of("<html><body><nav><a href=x>menu</a></nav><article><p>" + prose() + "</p></article>");
  page.is_page = true;
  REQUIRE(stage->run(page));
  CHECK(page.text.find("waits for them") != std::string::npos);
  CHECK(page.text.find("menu") == std::string::npos);
  CHECK_FALSE(page.is_page);
  Document empty = document_of("<html><body></body></html>");
  empty.is_page = true;
  CHECK_FALSE(stage->run(empty));
  CHECK(empty.reason == "extract.no_text");
  Document deep = document_of(repeated("<div>", 100'000));
  deep.is_page = true;
  CHECK_FALSE(stage->run(deep));
  CHECK(deep.reason == "extract.too_deep");
  Document text = document_of("<p>not a page");
  CHECK(stage->run(text));
  CHECK(text.text == "<p>not a page");
}

TEST_CASE("rules store their values and name the first one that is broken") {
  Document good = document_of(prose());
  CHECK(run(RulesStage{}, good) == "");
  CHECK(find_value(good, "words") != nullptr);
  CHECK(find_value(good, "duplicate_lines") != nullptr);
  CHECK(find_value(good, "terminal_lines") != nullptr);
  Document small = document_of("Too few words.");
  CHECK(run(RulesStage{.sets = {RuleSet::kGopherQuality}}, small) == "gopher_quality.words");
  CHECK(*find_value(small, "words") == 3);
  CHECK(run(RulesStage{.sets = {RuleSet::kGopherQuality}, .drop = false}, small) == "");
  Document blank = document_of(" \n");
  CHECK(run(RulesStage{}, blank) == "rules.empty");
}

TEST_CASE("limits replace those of the sets, side by side, for some languages or all") {
  Document document = document_of("There are too few of the words in that.");
  const auto words = [](double least) {
    return RulesStage{.sets = {RuleSet::kGopherQuality}, .limits = {{.value = "words", .least = {least}}}};
  };
  CHECK(run(words(5), document) == "");
  CHECK(run(words(10), document) == "gopher_quality.words");
  RulesStage most = words(5);
  most.limits[0].most = {8};
  CHECK(run(most, document) == "gopher_quality.words");
  RulesStage german = words(100);
  german.languages = {"de"};
  CHECK(run(german, document) == "");
  document.language = "de";
  CHECK(run(german, document) == "gopher_quality.words");
  german.stop_words = {"words", "few"};
  german.limits.clear();
  german.limits.push_back({.value = "words", .least = {1}});
  CHECK(run(german, document) == "");
  german.stop_words = {"und", "der"};
  CHECK(run(german, document) == "gopher_quality.stop_words");
}

TEST_CASE("a limit may be of a value that no set has: it is measured") {
  RulesStage stage{.sets = {}, .limits = {{.value = "words", .least = {5}}}};
  Document few = document_of("Three words only."), enough = document_of("There are many more than five words here.");
  CHECK(run(stage, few) == "rules.words");
  CHECK(run(stage, enough) == "");
  stage.limits.front().value = "wrods";
  CHECK_THROWS_WITH(run(stage, enough), Catch::Contains("has no value 'wrods'"));
}

TEST_CASE("values of an earlier run are judged without the text") {
  Document document = document_of("anything");
  set_value(document, "words", 70);
  set_value(document, "perplexity", 300);
  RulesStage stored{.sets = {}, .limits = {{.value = "words", .least = {50}}}, .values = StoredValues::kStored};
  CHECK(run(stored, document) == "");
  stored.limits.push_back({.value = "perplexity", .most = {200}});
  CHECK(run(stored, document) == "rules.perplexity");
  stored.limits.back().value = "absent";
  CHECK_THROWS_WITH(run(stored, document), Catch::Contains("has no value 'absent'"));
}

TEST_CASE("a model labels the language, and other languages and doubtful texts go") {
  const TempDir dir;
  std::vector<LabelledText> examples;
  for (int i = 0; i < 20; ++i) {
    examples.push_back({"en", "the cat sits on the window and the dog lies at the door"});
    examples.push_back({"de", "die Katze sitzt am Fenster und der Hund liegt vor der Haust\u00fcr"});
  }
  train_classifier(examples, kSmall, dir.file("l.bin"));
  Document document = document_of("der Hund und die Katze");
  CHECK(run(LanguageStage{.model = dir.file("l.bin")}, document) == "");
  CHECK(document.language == "de");
  CHECK(*find_value(document, "language_score") > 0.5);
  CHECK(run(LanguageStage{.model = dir.file("l.bin"), .keep = {"de"}, .least = 0.5}, document) == "");
  CHECK(run(LanguageStage{.model = dir.file("l.bin"), .keep = {"en"}, .least = 0.5}, document) == "language.other");
  CHECK(run(LanguageStage{.model = dir.file("l.bin"), .keep = {"de"}, .least = 1}, document) == "language.score");
  CHECK_THROWS_WITH(run(LanguageStage{.model = dir.file("none.bin")}, document), Catch::Contains("none.bin"));
}

TEST_CASE("a label to keep that the model has not is an error at the start") {
  const TempDir dir;
  train_classifier({{"en", "the cat and the dog"}, {"de", "die Katze und der Hund"}}, kSmall, dir.file("m.bin"));
  Document document = document_of("the cat");
  CHECK_THROWS_WITH(run(LanguageStage{.model = dir.file("m.bin"), .keep = {"eng"}}, document),
                    Catch::Contains("has no label 'eng'"));
}

TEST_CASE("a document is green, red, or loses its bad paragraphs") {
  const TempDir dir;
  std::vector<LabelledText> examples;
  for (int i = 0; i < 30; ++i) {
    examples.push_back({"good", "the method of the study shows that results hold"});
    examples.push_back({"bad", "buy now cheap offer click here win prize"});
  }
  train_classifier(examples, kSmall, dir.file("q.bin"));
  const std::string good = "the study shows that the method holds", bad = "click here buy cheap prize now";
  ClassifyStage stage{.model = dir.file("q.bin"), .green = 0.9, .red = 0.1};
  Document green = document_of(good);
  CHECK(run(stage, green) == "");
  CHECK(*find_value(green, "quality") > 0.9);
  CHECK(green.text == good);
  Document red = document_of(bad);
  CHECK(run(stage, red) == "quality.red");
  Document mixed = document_of(good + "\n\n" + bad + "\n" + good);
  stage.green = 1, stage.red = 0;  // all are yellow
  CHECK(run(stage, mixed) == "");
  CHECK(mixed.text == good + "\n\n" + good);
  Document worse = document_of(good + "\n" + repeated(bad + "\n", 6));
  CHECK(run(stage, worse) == "quality.paragraphs");
  stage.label = "excellent";
  CHECK_THROWS_WITH(run(stage, mixed), Catch::Contains("has no label 'excellent'"));
}

TEST_CASE("lines that are no sentences go, and personal data is masked") {
  Document document = document_of("Home\n" + prose() + "menu one two three\n");
  CHECK(run(C4Stage{}, document) == "");
  CHECK(document.text.find("Home") == std::string::npos);
  CHECK(document.text.find("menu") == std::string::npos);
  Document few = document_of("One line that is a sentence.");
  CHECK(run(C4Stage{}, few) == "c4.few_sentences");
  Document mail = document_of("write to jane.doe@corp.example.net today");
  CHECK(run(MaskStage{}, mail) == "");
  CHECK(mail.text.find("jane") == std::string::npos);
  CHECK(*find_value(mail, "masked") == 1);
}

TEST_CASE("a document that shares an n-gram with an evaluation is dropped") {
  const TempDir dir;
  const std::string question = "which of the seven rivers flows through the old town of the north";
  write_text_atomically(dir.file("eval.jsonl"), str("{\"question\": \"", question, "?\"}\n"), Kind::kData);
  DecontaminateStage stage{.against = {dir.file("eval.jsonl")}, .words = 8, .text_key = "question"};
  Document copy = document_of("He asked: WHICH of the seven, rivers flows through the sea?");
  CHECK(run(stage, copy) == "decontaminate.ngram");
  Document other = document_of("He asked which of the seven rivers flows.");
  CHECK(run(stage, other) == "");
  stage.words = 6;
  CHECK(run(stage, other) == "decontaminate.ngram");
  stage.words = 50;
  CHECK_THROWS_WITH(run(stage, other), Catch::Contains("no sequence of 50 words"));
}
