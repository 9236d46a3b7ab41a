// tokamak bench data: the speed of each stage of data preparation, on one thread, and of a whole run on two.
#include <functional>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "data/pipeline/copies.h"
#include "data/pipeline/corpus.h"
#include "data/pipeline/corpus_reader.h"
#include "data/pipeline/document_line.h"
#include "data/pipeline/prepare.h"
#include "data/pipeline/stages.h"
#include "formats/zstd_writer.h"

namespace tokamak::cli {

namespace {

// A new directory that is removed at the end.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {
    if (exists(path_))
      fail(Kind::kConfig, str("--scratch ", path_, " exists"), "name another: it is removed at the end");
    make_directories(path_, Kind::kConfig);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class BenchDataCommand : public Command {
 public:
  explicit BenchDataCommand(CLI::App* parser) {
    parser->add_option("--input", inputs_, "corpus: .warc, .jsonl, .txt, plain, .gz or .zst; it must fit in memory")
        ->required()
        ->type_name("PATH");
    parser->add_option("--language-model", language_model_, "fastText model of languages, to measure it too")
        ->type_name("FILE");
    parser->add_option("--scratch", scratch_, "directory for temporary files, removed at the end")
        ->capture_default_str();
    parser->add_option("--seconds", seconds_, "each measurement is repeated for this long, and the fastest counts")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--json", json_, "write the results to this file, too");
  }

  int run() override {
    const ScratchDirectory scratch(scratch_);
    files_ = find_corpus(inputs_);
    std::cout << std::left << std::setw(44) << "one thread" << std::right << std::setw(14) << "documents/s"
              << std::setw(12) << "MB/s"
              << "\n";
    read_and_extract();
    if (texts_.empty()) fail(Kind::kData, "the inputs have no text to measure with");
    read_lines(scratch.file("documents.jsonl.zst"));
    if (!language_model_.empty()) measure_stage("language (fastText)", LanguageStage{.model = language_model_});
    using enum RuleSet;
    measure_stage("rules: gopher_quality", RulesStage{.sets = {kGopherQuality}, .drop = false});
    measure_stage("rules: gopher_repetition", RulesStage{.sets = {kGopherRepetition}, .drop = false});
    measure_stage("rules: fineweb", RulesStage{.sets = {kFineWeb}, .drop = false});
    measure_stage("rules: the default sets", RulesStage{.drop = false});
    measure_stage("rules: all sets",
                  RulesStage{.sets = {kGopherRepetition, kGopherQuality, kFineWeb, kNemo}, .drop = false});
    measure_stage("c4", C4Stage{});
    measure_stage("mask", MaskStage{});
    measure_copies("exact: documents", ExactStage{}, scratch);
    measure_copies("exact: paragraphs", ExactStage{.unit = CopyUnit::kParagraphs}, scratch);
    measure_copies("minhash", MinHashStage{}, scratch);
    measure_copies("simhash, 64 bits", SimHashStage{}, scratch);
    measure_copies("simhash, 128 bits", SimHashStage{.options = {.bits = 128, .distance = 18}}, scratch);
    measure_threads(scratch);
    if (!json_.empty()) write_text_atomically(json_, results_.dump(2) + "\n", Kind::kConfig);
    return 0;
  }

 private:
  // The fastest of some runs.
  template <class Work>
  double fastest(const Work& work) const {
    double best = 1e300;
    const Stopwatch all;
    do {
      const Stopwatch once;
      work();
      best = std::min(best, once.seconds());
    } while (all.seconds() < seconds_);
    return best;
  }

  void show(const std::string& name, double seconds, int64_t documents, int64_t bytes) {
    std::cout << std::left << std::setw(44) << name << std::right << std::setw(14)
              << human_count(double(documents) / seconds) << std::setw(12) << fixed(double(bytes) / seconds / 1e6, 1)
              << std::endl;
    results_[name] = {{"seconds", seconds}, {"documents", documents}, {"bytes", bytes}};
  }

  // Reads the corpus from its files. Pages become texts by each extractor; the last one's are kept.
  void read_and_extract() {
    for (const Extractor extractor : {Extractor::kUnion, Extractor::kWhole, Extractor::kMain}) {
      PrepareOptions options;
      options.extract.extractor = extractor;
      const StageMaker maker(options);
      int64_t pages = 0, bytes = 0;
      const double seconds = fastest([&] {
        const std::unique_ptr<Stage> stage = maker.make_extraction();
        texts_.clear(), pages = bytes = text_bytes_ = 0;
        for (const CorpusFile& file : files_) {
          const auto reader = open_corpus_part(file, {}, {});
          for (Document document; reader->next(document);) {
            if (document.dropped) continue;
            pages += document.is_page ? 1 : 0;
            bytes += document.text_bytes;
            if (!stage->run(document)) continue;
            text_bytes_ += std::ssize(document.text);
            texts_.push_back(std::move(document));
          }
        }
      });
      if (pages > 0)
        show(str("read, HTML, extract: ", enum_name(extractor)), seconds, pages, bytes);
      else if (extractor == Extractor::kMain)
        show("read", seconds, std::ssize(texts_), bytes);
    }
  }

  void read_lines(const std::string& path) {
    ZstdWriter writer(path, Kind::kConfig);
    std::string line;
    for (const Document& document : texts_) {
      line.clear();
      append_document_line(document, line);
      writer.write(line += '\n');
    }
    writer.finish();
    const double seconds = fastest([&] {
      const auto reader = open_corpus_part({.path = path}, {}, {});
      for (Document document; reader->next(document);) continue;
    });
    show("read .jsonl.zst", seconds, std::ssize(texts_), text_bytes_);
  }

  void measure_stage(const std::string& name, PrepareStage stage) {
    PrepareOptions options;
    options.stages.push_back(std::move(stage));
    const StageMaker maker(options);
    const std::unique_ptr<Stage> made = maker.make(0);
    std::vector<Document> documents;
    double best = 1e300;
    const Stopwatch all;
    do {
      documents = texts_;
      const Stopwatch once;
      for (Document& document : documents) made->run(document);
      best = std::min(best, once.seconds());
    } while (all.seconds() < seconds_);
    show(name, best, std::ssize(texts_), text_bytes_);
  }

  // From texts in memory to the list of copies on disk.
  void measure_copies(const std::string& name, const PrepareStage& stage, const ScratchDirectory& scratch) {
    const double key_seconds = fastest([&] {
      CopyKeys keys(stage);
      for (const Document& document : texts_) keys.add(document);
      keys.write(scratch.file("keys"));
    });
    show(name + ": keys", key_seconds, std::ssize(texts_), text_bytes_);
    const CopyKeys keys(stage);
    const double search_seconds = fastest([&] {
      const std::vector<BandFile> files = {BandFile(scratch.file("keys"))};
      std::vector<std::string> pairs;
      for (int64_t band = 0; band < keys.bands(); ++band) {
        pairs.push_back(scratch.file(str("pairs-", band)));
        write_pairs(files, band, {}, keys.rule(), pairs.back());
      }
      write_copies(stage, files, pairs, scratch.file("."));
    });
    show(name + ": search", search_seconds, std::ssize(texts_), text_bytes_);
  }

  // The default rules and MinHash by one thread and by two.
  void measure_threads(const ScratchDirectory& scratch) {
    PrepareOptions options;
    options.inputs = inputs_;
    options.part_bytes = int64_t{1} << 20;
    options.stages = {RulesStage{}, ExactStage{}, MinHashStage{}};
    double seconds[2];
    for (const int64_t threads : {1, 2}) {
      options.output = scratch.file(str("of-", threads));
      const Stopwatch once;
      prepare(options, {.share = {.threads = threads}, .tool = "bench"});
      seconds[threads - 1] = once.seconds();
    }
    std::cout << "\nrules, exact and minhash by `tokamak data prepare`: " << fixed(seconds[0], 1)
              << " s on one thread, " << fixed(seconds[0] / seconds[1], 2) << " times as fast on two\n";
    results_["two threads"] = {{"speed", seconds[0] / seconds[1]}};
  }

  std::vector<std::string> inputs_;
  std::string language_model_, scratch_ = "bench-data.tmp", json_;
  double seconds_ = 2;
  std::vector<CorpusFile> files_;
  std::vector<Document> texts_;
  int64_t text_bytes_ = 0;
  nlohmann::ordered_json results_;
};

}  // namespace

void add_bench_data(CLI::App& bench, Commands& commands) {
  add_command<BenchDataCommand>(bench, commands, "data",
                                "each stage of data preparation, on one thread of this machine")
      ->footer("  tokamak bench data --input crawl.warc.gz --language-model lid.176.bin");
}

}  // namespace tokamak::cli
