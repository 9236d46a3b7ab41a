// A corpus becomes shards: the same bits for any workers and memory, after any stop, and no document is lost uncounted.
#include "data/pipeline/prepare.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "data/pipeline/explain.h"
#include "data/verify.h"
#include "formats/zstd_writer.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string sentence(int i) {
  return str("On day ", i, " the people of town ", i * 31 % 97, " have gone to see the ", i * 17 % 89,
             " boats that came with the wind.");
}

// Documents 0 to 59: some short, some copies, and one line that is no document.
void write_corpus(const std::string& path) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    std::string body;
    for (int k = 0; k < 6; ++k) body += sentence(i % 7 == 3 ? 6 * (i - 1) + k : 6 * i + k) + "\\n";
    text += i == 20 ? "no json\n" : str("{\"id\": \"d", i, "\", \"text\": \"", i % 9 == 0 ? "short" : body, "\"}\n");
  }
  write_text_atomically(path, text, Kind::kData);
}

struct Work {
  Work() { write_corpus(dir.file("c.jsonl")); }

  PrepareOptions options(const std::string& output = "out") const {
    PrepareOptions options;
    options.inputs = {dir.file("c.jsonl")};
    options.output = dir.file(output);
    options.part_bytes = 3000;
    options.threads = 1;
    options.stages = {RulesStage{.sets = {RuleSet::kGopherQuality}}, ExactStage{}, MaskStage{}};
    return options;
  }

  TempDir dir;
};

PrepareReport run(const PrepareOptions& options, const PrepareContext& context = {.tool = "test"}) {
  return prepare(options, context);
}

std::string files_of(const std::string& directory) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) all += entry.path().string().substr(directory.size()) + "\n";
  const std::vector<std::string> names = split(all, '\n');
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  std::string out;
  for (const std::string& name : sorted)
    if (!name.empty()) out += name + "\n" + read_text(directory + name, Kind::kData) + "\n";
  return out;
}

}  // namespace

TEST_CASE("every document is written or dropped with a reason") {
  const Work work;
  const PrepareReport report = run(work.options());
  CHECK(sum_of(report.counts.read()).documents == 60);
  CHECK(report.inputs.at(work.dir.file("c.jsonl")) == report.bytes);
  CHECK(report.tool == "test");
  int64_t dropped = 0;
  for (const auto& [reason, tallies] : report.counts.drops()) dropped += sum_of(tallies).documents;
  CHECK(dropped + sum_of(report.counts.written()).documents == 60);
  CHECK(sum_of(report.counts.drops().at("input.no_json")).documents == 1);
  CHECK(sum_of(report.counts.drops().at("gopher_quality.words")).documents == 7);
  CHECK(sum_of(report.counts.drops().at("exact")).documents == 7);  // of 9, one is short, one follows a short one
  CHECK(report.counts.values().at("words").count() == 59);
  CHECK(report.counts.examples().at("exact").size() == 3);
}

TEST_CASE("the output is the same bits for any threads, ranks and memory") {
  const Work work;
  run(work.options("a"));
  const std::string expected = files_of(work.dir.file("a"));
  REQUIRE(expected.find("part-00003") != std::string::npos);
  PrepareOptions threads = work.options("b");
  threads.work = work.dir.file("w-b");
  threads.memory = int64_t{64} << 20;
  PrepareContext four{.share = {.threads = 4}, .tool = "test"};
  run(threads, four);
  CHECK(files_of(work.dir.file("b")) == expected);

  PrepareOptions shared = work.options("c");
  shared.memory = 2000;  // of the searches; ranks with more threads have less for each
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      PrepareContext context{.share = {.rank = rank, .ranks = 3, .threads = 1 + 7 * rank}, .tool = "test"};
      run(shared, context);
    });
  for (std::thread& rank : ranks) rank.join();
  CHECK(files_of(work.dir.file("c")) == expected);
}

TEST_CASE("a finished output is not made again, and anything else in its place is an error") {
  const Work work;
  run(work.options());
  int calls = 0;
  PrepareContext context{.tool = "test"};
  context.progress = [&](const PrepareProgress&) { ++calls; };
  const PrepareReport again = run(work.options(), context);
  CHECK(calls == 0);
  CHECK(sum_of(again.counts.read()).documents == 60);
  PrepareOptions changed = work.options();
  changed.seed = 5;  // documents have no order
  changed.stages.pop_back();
  CHECK_THROWS_WITH(run(changed), Catch::Contains("another config, input or version made it"));
  write_corpus(work.dir.file("c.jsonl"));  // with another time
  CHECK_THROWS_WITH(run(work.options()), Catch::Contains("another config, input or version made it"));
}

TEST_CASE("another last stage takes what the stages before it have made") {
  const Work work;
  run(work.options());
  PrepareOptions other = work.options("other");
  other.work = work.options().output + ".work";
  other.stages.back() = C4Stage{};
  int64_t found = 0, all = 0, found_last = 0;
  PrepareContext context{.tool = "test"};
  context.progress = [&](const PrepareProgress& progress) {
    if (progress.step == "documents, step 2 of 2") found_last = progress.tasks.found;
    if (progress.step != "documents, step 1 of 2") return;
    found = progress.tasks.found, all = progress.tasks.all;
  };
  run(other, context);
  CHECK(all > 3);
  CHECK(found == all);
  CHECK(found_last == 0);
}

TEST_CASE("a tokenizer is trained on the documents, and makes the same shards again") {
  const Work work;
  PrepareOptions options = work.options("a");
  options.tokens.train_vocab_size = 350;
  options.tokens.validation = 0.2;
  options.tokens.shard_tokens = 2000;
  const PrepareReport report = run(options);
  REQUIRE(report.train);
  REQUIRE(report.validation);
  CHECK(report.train->documents() + report.validation->documents() == sum_of(report.counts.written()).documents);
  CHECK(report.train->tokens() + report.validation->tokens() == report.counts.tokens());
  CHECK(report.train->text_bytes + report.validation->text_bytes == sum_of(report.counts.written()).bytes);
  CHECK(report.train->shards.size() > 2);
  CHECK(report.train->vocab_size == 350);
  PrepareOptions by_file = work.options("b");
  by_file.tokens = {.tokenizer = options.output + "/train/tokenizer.model", .validation = 0.2, .shard_tokens = 2000};
  const PrepareReport same = run(by_file);
  CHECK(same.train->id() == report.train->id());
  CHECK(same.validation->id() == report.validation->id());
}

TEST_CASE("tokenizers of several sizes share a work directory") {
  const Work work;
  for (const int64_t size : {300, 350}) {
    PrepareOptions options = work.options(str("of-", size));
    options.work = work.dir.file("w");
    options.tokens.train_vocab_size = size;
    CHECK(run(options).train->vocab_size == size);
  }
}

TEST_CASE("an empty directory may be the output, by any name") {
  const Work work;
  for (const std::string name : {"plain", "slash/"}) {
    PrepareOptions options = work.options(name);
    make_directories(options.output, Kind::kData);
    run(options);
    CHECK(exists(work.dir.file(name + "/report.json")));
    CHECK(run(options).files == 1);  // finished already
    options.work = options.output + "/wk";
    CHECK_THROWS_WITH(run(options), Catch::Contains("is inside of the output"));
  }
  PrepareOptions options = work.options("in");
  options.inputs = {work.dir.path()};
  CHECK_THROWS_WITH(run(options), Catch::Contains("is inside of the input"));
}

TEST_CASE("text that stages remove from documents is counted, and so are the bytes that are read") {
  const Work work;
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += str("{\"text\": \"Menu\\n", sentence(5 * i), " ", sentence(5 * i + 1), " ", sentence(5 * i + 2), " ",
                sentence(5 * i + 3), " ", sentence(5 * i + 4), "\"}\n");
  write_text_atomically(work.dir.file("c.jsonl"), text, Kind::kData);
  PrepareOptions options = work.options();
  options.stages = {C4Stage{}};
  PrepareProgress last;
  PrepareContext context{.tool = "test"};
  context.progress = [&](const PrepareProgress& progress) {
    if (progress.total_bytes > 0) last = progress;
  };
  const PrepareReport report = run(options, context);
  CHECK(report.counts.removals().at("c4").documents == 300);
  CHECK(report.counts.removals().at("c4").bytes == 300 * 5);
  CHECK(last.tasks.all > 9);
  CHECK(last.bytes == std::ssize(text));
  CHECK(last.total_bytes == std::ssize(text));
}

TEST_CASE("an input cannot fill the report with names") {
  const Work work;
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += str("{\"text\": \"a\", \"language\": \"l", i, "\", \"attributes\": {\"v", i, "\": 1}}\n");
  write_text_atomically(work.dir.file("c.jsonl"), text, Kind::kData);
  PrepareOptions options = work.options();
  options.stages.clear();
  const PrepareReport report = run(options);
  CHECK(report.counts.values().size() == PrepareCounts::kMostNames + 1);
  CHECK(report.counts.languages().size() == PrepareCounts::kMostNames + 1);
  int64_t languages = 0;
  for (const auto& [name, tally] : report.counts.languages()) languages += tally.documents;
  CHECK(languages == 2000);
}

TEST_CASE("a damaged report is an error that names it") {
  const Work work;
  const PrepareReport report = run(work.options());
  const std::string path = work.options().output + "/report.json";
  write_text_atomically(path, "{\"identity\": 5}", Kind::kData);
  CHECK_THROWS_WITH(run(work.options()), Catch::Contains("another config, input or version made it"));
  write_text_atomically(path, "{\"identity\": \"" + report.identity + "\", \"files\": []}", Kind::kData);
  CHECK_THROWS_WITH(run(work.options()), Catch::Contains("report.json is damaged"));
}

TEST_CASE("a damaged line between two steps is an error: a search counts documents") {
  const Work work;
  run(work.options());
  PrepareOptions other = work.options("other");
  other.work = work.options().output + ".work";
  other.stages.back() = C4Stage{};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(other.work))
    if (entry.path().filename() == "kept.jsonl.zst" && entry.path().string().find("0-documents") != std::string::npos) {
      ZstdWriter zstd(entry.path().string(), Kind::kData);
      zstd.write("{\"id\": \"d1\"}\n");
      zstd.finish();
    }
  CHECK_THROWS_WITH(run(other), Catch::Contains("kept.jsonl.zst") || Catch::Contains("is damaged: input.no_text"));
}

TEST_CASE("a search by a value that no document has is an error") {
  const Work work;
  PrepareOptions options = work.options();
  options.stages = {RulesStage{.sets = {RuleSet::kGopherQuality}}, ExactStage{.best_by = "wrods"}};
  CHECK_THROWS_WITH(run(options), Catch::Contains("no document has a value 'wrods'"));
  options.stages.back() = ExactStage{.best_by = "words"};
  CHECK(sum_of(run(options).counts.drops().at("exact")).documents == 7);
}

TEST_CASE("a set without documents is an error") {
  const Work work;
  PrepareOptions options = work.options();
  options.tokens.train_vocab_size = 350;
  options.tokens.validation = 0.0001;
  CHECK_THROWS_WITH(run(options), Catch::Contains("the validation set would be empty"));
}

TEST_CASE("dropped documents are kept with their reasons if asked for") {
  const Work work;
  PrepareOptions options = work.options();
  options.keep_dropped = true;
  options.stages = {RulesStage{.sets = {RuleSet::kGopherQuality}}};
  run(options);
  PrepareOptions again;
  again.inputs = {options.output + "/dropped"};
  again.output = work.dir.file("dropped");
  const PrepareReport report = run(again);
  CHECK(sum_of(report.counts.written()).documents == 8);
  again.output = work.dir.file("once");
  again.stages = {ExactStage{}};  // the reason of the first run is not one to drop
  CHECK(sum_of(run(again).counts.written()).documents == 2);
}

TEST_CASE("a damaged file stops the run, or is counted") {
  const Work work;
  ZstdWriter zstd(work.dir.file("d.jsonl.zst"), Kind::kData);
  for (int i = 0; i < 5000; ++i) zstd.write(str("{\"text\": \"", sentence(i * i), "\"}\n"));
  zstd.finish();
  const std::string bytes = read_text(work.dir.file("d.jsonl.zst"), Kind::kData);
  write_text_atomically(work.dir.file("d.jsonl.zst"), bytes.substr(0, bytes.size() / 2), Kind::kData);
  PrepareOptions options = work.options();
  options.inputs.push_back(work.dir.file("d.jsonl.zst"));
  options.stages.clear();
  CHECK_THROWS_WITH(run(options), Catch::Contains("d.jsonl.zst is damaged"));
  options.damaged = DamagedFiles::kSkip;
  const PrepareReport report = run(options);
  REQUIRE(report.counts.damaged().size() == 1);
  CHECK(report.counts.damaged().front().find("d.jsonl.zst") != std::string::npos);
  CHECK(sum_of(report.counts.read()).documents > 60);
}

TEST_CASE("a document is explained stage by stage, with the run's verdict on copies") {
  const Work work;
  run(work.options());
  const auto kept = explain(work.options(), "test", "d2");
  REQUIRE(kept);
  REQUIRE(kept->stages.size() == 4);
  CHECK(kept->stages[1].stage == "rules");
  CHECK(kept->stages[1].values.size() == 8);
  CHECK(kept->stages[2].stage == "exact");
  CHECK(kept->stages[2].is_kept);
  const auto copy = explain(work.options(), "test", "d3");
  REQUIRE(copy);
  CHECK_FALSE(copy->stages[2].is_kept);
  CHECK(copy->stages[2].reason == "exact");
  const auto brief = explain(work.options(), "test", "d0");
  REQUIRE(brief);
  CHECK(brief->stages[1].reason == "gopher_quality.words");
  CHECK(brief->stages.back().stage == "mask");
  CHECK_FALSE(explain(work.options(), "test", "none"));
  PrepareOptions lines = work.options("lines");  // of documents 3, 10 and so on, all lines are copies
  lines.stages = {ExactStage{.unit = CopyUnit::kParagraphs}, RulesStage{.sets = {RuleSet::kGopherQuality}}};
  CHECK_FALSE(explain(lines, "test", "d3")->stages[1].is_known);
  run(lines);
  const auto cut = explain(lines, "test", "d3");
  REQUIRE(cut);
  CHECK(cut->stages[1].reason == "exact.empty");
  CHECK(cut->document.text.empty());
}
