// tokamak data classifier train | evaluate | apply: labels of texts by fastText, and scores of documents by a
// classifier or by a model of ours.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/parallel_for.h"
#include "base/printable.h"
#include "base/staged.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/run_context.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "data/classify/confusion.h"
#include "data/classify/text_classifier.h"
#include "data/pipeline/corpus.h"
#include "data/pipeline/corpus_reader.h"
#include "data/pipeline/document_line.h"
#include "data/pipeline/stages.h"
#include "data/prepare/tokenize.h"
#include "eval/encoding.h"
#include "formats/compressed_stream.h"
#include "formats/json.h"
#include "formats/zstd_writer.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

struct LabelledInputs {
  std::vector<std::string> paths;
  std::string text_key = "text", label_key = "label";
  bool paragraphs = false;

  explicit LabelledInputs(CLI::App* parser) {
    parser->add_option("--input", paths, "labelled texts: .jsonl files, plain, .gz or .zst")
        ->required()
        ->type_name("PATH");
    parser->add_option("--text-key", text_key, "member of each line that holds the text")->capture_default_str();
    parser->add_option("--label-key", label_key, "member of each line that holds the label, a text")
        ->capture_default_str();
    parser->add_flag("--paragraphs", paragraphs,
                     "each line of a text is an example: for languages, and paragraph models");
  }

  std::vector<LabelledText> read() const {
    std::vector<LabelledText> texts;
    for (const CorpusFile& file : find_corpus(paths)) {
      LineReader lines(open_stream(file.path, Kind::kData));
      for (std::string line; lines.next(line);) {
        if (trim(line).empty()) continue;
        const JsonDocument json(line, {str(file.path, ":", lines.line_number())}, JsonRules::kLenient);
        const std::string label = json[label_key].text();
        const std::vector<std::string> units =
            paragraphs ? split(json[text_key].text(), '\n') : std::vector{json[text_key].text()};
        for (const std::string& unit : units)
          if (!trim(unit).empty()) texts.push_back({label, unit});
      }
    }
    return texts;
  }
};

std::string percent(double share) { return std::isnan(share) ? "-" : fixed(100 * share, 1) + "%"; }

void pad_to(std::string& line, size_t width) { line.resize(std::max(line.size() + 1, width), ' '); }

// Rows are the true labels.
void print_confusion(const Confusion& confusion) {
  const std::vector<std::string> labels = confusion.labels();
  std::string head = "true \\ given";
  for (size_t i = 0; i < labels.size(); ++i) pad_to(head, 16 + 10 * i), head += labels[i];
  pad_to(head, 16 + 10 * labels.size());
  std::cout << head << "precision  recall\n";
  for (const std::string& truth : labels) {
    std::string row = truth;
    for (size_t i = 0; i < labels.size(); ++i) pad_to(row, 16 + 10 * i), row += str(confusion.count(truth, labels[i]));
    pad_to(row, 16 + 10 * labels.size());
    row += percent(confusion.precision(truth));
    pad_to(row, 16 + 10 * labels.size() + 11);
    std::cout << row << percent(confusion.recall(truth)) << "\n";
  }
  std::cout << confusion.texts() << " texts, " << percent(confusion.accuracy()) << " with their true label\n";
}

// `label`: the one whose thresholds are printed; "": none.
void evaluate(const TextClassifier& classifier, const std::vector<LabelledText>& texts, const std::string& label) {
  Confusion confusion;
  std::vector<ScoredText> scores;
  for (const LabelledText& text : texts) {
    confusion.add(text.label, classifier.best(text.text).name);
    if (!label.empty()) scores.push_back({classifier.probability(text.text, label), text.label == label});
  }
  print_confusion(confusion);
  if (label.empty()) return;
  std::cout << "\ntexts kept from a score of '" << label << "' on\nscore   kept      precision  recall\n";
  for (int step = 1; step <= 9; ++step) {
    const Threshold at = at_threshold(scores, 0.1 * step);
    std::string row = fixed(at.score, 1);
    pad_to(row, 8), row += str(at.kept), pad_to(row, 18), row += percent(at.precision), pad_to(row, 29);
    std::cout << row << percent(at.recall) << "\n";
  }
}

class TrainClassifier : public Command {
 public:
  explicit TrainClassifier(CLI::App* parser) : inputs_(parser) {
    parser->add_option("--output", output_, "model to write, for stages 'classify' and 'language'")
        ->required()
        ->type_name("FILE");
    add_quantity(parser, "--holdout", holdout_, parse_number, "share of the texts to evaluate on, not to train on")
        ->default_str("10%");
    parser->add_option("--label", label_, "print precision and recall of this label by threshold");
    FieldOptions fields(parser);
    options_.fields(fields);
  }

  int run() override {
    if (holdout_ < 0 || holdout_ >= 1) fail(Kind::kConfig, "--holdout must be at least 0 and below 1");
    const std::vector<LabelledText> texts = inputs_.read();
    const auto has_label = [&](const LabelledText& text) { return text.label == label_; };
    if (!label_.empty() && std::none_of(texts.begin(), texts.end(), has_label))
      fail(Kind::kConfig, str("no text has the label '", printable(label_), "' of --label"));
    std::vector<LabelledText> train, held;
    for (size_t i = 0; i < texts.size(); ++i)
      (held_out(options_.seed, static_cast<int64_t>(i), holdout_) ? held : train).push_back(texts[i]);
    StagedOutput output(output_, StagedOutput::What::kFile, Kind::kData, Existing::kReplace);
    train_classifier(train, options_, output.staging());
    output.commit();
    const TextClassifier classifier(output_);
    std::cout << output_ << ": trained on " << train.size() << " texts, hash " << classifier.hash() << "\n";
    if (!held.empty()) {
      std::cout << "\non " << held.size() << " held-out texts:\n";
      evaluate(classifier, held, label_);
    }
    return 0;
  }

 private:
  LabelledInputs inputs_;
  std::string output_, label_;
  double holdout_ = 0.1;
  ClassifierOptions options_;
};

class EvaluateClassifier : public Command {
 public:
  explicit EvaluateClassifier(CLI::App* parser) : inputs_(parser) {
    parser->add_option("--classifier", classifier_, "model of tokamak data classifier train, or of fastText")
        ->required()
        ->type_name("FILE");
    parser->add_option("--label", label_, "print precision and recall of this label by threshold");
  }

  int run() override {
    const TextClassifier classifier(classifier_);
    if (!label_.empty()) classifier.expect_label(label_);
    evaluate(classifier, inputs_.read(), label_);
    return 0;
  }

 private:
  LabelledInputs inputs_;
  std::string classifier_, label_;
};

// Scores documents, a batch at a time.
using ScoreBatch = std::function<std::vector<double>(const std::vector<Document>& documents)>;

class ApplyClassifier : public Command {
 public:
  explicit ApplyClassifier(CLI::App* parser) : model_(parser) {
    parser->add_option("--input", inputs_, "documents: .jsonl and .txt files, plain, .gz or .zst, or directories")
        ->required()
        ->type_name("PATH");
    parser->add_option("--output", output_, "documents with their scores, as .jsonl or .jsonl.zst")
        ->required()
        ->type_name("FILE");
    parser->add_option("--classifier", classifier_, "fastText model; else --checkpoint or --model gives perplexities")
        ->type_name("FILE");
    parser->add_option("--label", label_, "label whose probability is the score")->capture_default_str();
    parser->add_option("--name", name_, "name of the stored score; default: quality, or perplexity");
    parser->add_option("--text-key", text_key_, "member of each .jsonl line that holds the text")
        ->capture_default_str();
    add_quantity(parser, "--keep", keep_, parse_number,
                 "write only this share of the documents: those of the greatest score, or of the least perplexity")
        ->default_str("100%");
  }

  int run() override {
    if (keep_ <= 0 || keep_ > 1) fail(Kind::kConfig, "--keep must be above 0 and at most 1");
    if (compression_of(output_) == Compression::kGzip)
      fail(Kind::kConfig, str("--output ", output_, ": gzip is not written"), "name a .jsonl or .jsonl.zst file");
    if (exists(output_)) fail(Kind::kConfig, str("the output ", output_, " exists"), "name another, or remove it");
    if (!classifier_.empty()) {
      if (!model_.checkpoint.empty() || !model_.model.empty())
        fail(Kind::kConfig, "--classifier excludes --checkpoint and --model");
      if (name_.empty()) name_ = "quality";
      const TextClassifier classifier(classifier_);
      classifier.expect_label(label_);
      set_thread_count(available_cores());
      score_all(
          [&](const std::vector<Document>& documents) {
            std::vector<double> scores(documents.size());
            parallel_for(std::ssize(documents), 16, [&](int64_t begin, int64_t end) {
              for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                scores[i] = classifier.probability(documents[i].text, label_);
            });
            return scores;
          },
          true);
      return 0;
    }
    if (model_.checkpoint.empty() && model_.model.empty())
      fail(Kind::kConfig, "none of --classifier, --checkpoint and --model is given");
    if (name_.empty()) name_ = "perplexity";
    return run_in_world([this](World& world) {
      or_end_all(world, [&] { score_by_model(world); });
      return 0;
    });
  }

 private:
  void score_by_model(World& world) {
    std::unique_ptr<ModelSource> source;
    std::unique_ptr<Tokenizer> tokenizer;
    collectively(world.comm(), [&] {
      source = open_model_source(world.comm(), model_);
      tokenizer = load_tokenizer_for(*source, model_);
    });
    const EncodingOptions encoding = {.context = source->config().model.max_position_embeddings,
                                      .add_bos = model_.adds_bos(*source)};
    const RunConfig config = model_.config_for(*source);
    Backend backend = make_backend_collectively(world, config.runtime);
    const std::unique_ptr<Comm> data_comm = make_data_comm(world.comm(), *backend.device, config.runtime);
    const EngineSizes sizes{
        .max_tokens = std::max<int64_t>(4096, encoding.context), .max_length = encoding.context, .training = false};
    Engine engine(engine_options(config, sizes), *data_comm, backend);
    engine.commit();
    fill(engine, *source);
    EvalEncoder encoder(*tokenizer, encoding);
    score_all(
        [&](const std::vector<Document>& documents) {
          std::vector<ScoredSequence> sequences;
          for (size_t i = 0; i < documents.size(); ++i)
            for (ScoredSequence& window : encoder.windows(documents[i].text)) {
              window.item = static_cast<int64_t>(i);
              sequences.push_back(std::move(window));
            }
          const std::vector<SequenceScore> scores = score_sequences(engine, sequences, [] {});
          std::vector<double> sums(documents.size()), tokens(documents.size());
          for (size_t i = 0; i < sequences.size(); ++i) {
            const auto item = static_cast<size_t>(sequences[i].item);
            sums[item] += scores[i].log_likelihood, tokens[item] += double(sequences[i].scored);
          }
          // A text of no token says nothing, so that it comes last.
          for (size_t i = 0; i < sums.size(); ++i)
            sums[i] = tokens[i] > 0 ? std::exp(-sums[i] / tokens[i]) : std::numeric_limits<double>::infinity();
          return sums;
        },
        world.rank() == 0);
  }

  // Calls take(documents) for batches, in order. Lines that are no document are an error: nothing is lost unseen.
  template <class Take>
  void for_batches(const Take& take) const {
    constexpr int64_t kBatchBytes = int64_t{4} << 20;
    std::vector<Document> batch;
    int64_t bytes = 0;
    for (const CorpusFile& file : find_corpus(inputs_)) {
      const auto reader = open_corpus_part(file, {}, {.text_key = text_key_, .document_bytes = kLongestLine});
      for (Document document; reader->next(document);) {
        if (document.dropped || document.is_page) {
          fail(Kind::kData,
               str("document ", document.id, " has no text: ", document.is_page ? "it is HTML" : document.reason),
               "tokamak data prepare extracts texts, and counts damaged lines");
        }
        bytes += std::ssize(document.text);
        batch.push_back(std::move(document));
        if (bytes < kBatchBytes) continue;
        take(batch);
        batch.clear();
        bytes = 0;
      }
    }
    if (!batch.empty()) take(batch);
  }

  // `writes`: whether this rank writes the output.
  void score_all(const ScoreBatch& score, bool writes) {
    int64_t total = 0, done = 0;
    for (const CorpusFile& file : find_corpus(inputs_)) total += file.bytes;
    const bool least_first = classifier_.empty();
    const double worst = (least_first ? 1 : -1) * std::numeric_limits<double>::infinity();
    std::vector<double> scores;
    ProgressLines lines;
    for_batches([&](const std::vector<Document>& documents) {
      for (const double one : score(documents)) scores.push_back(std::isnan(one) ? worst : one);
      for (const Document& document : documents) done += std::ssize(document.text);
      if (writes) lines.at(std::min(done, total), total, str(", ", scores.size(), " documents scored"));
    });
    if (!writes) return;
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) fail(Kind::kData, "the inputs have no document");
    const auto at = [&](double share) {
      return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * double(sorted.size())))];
    };
    const double limit = least_first ? at(keep_) : at(1 - keep_);
    write([&](size_t number, Document& document) {
      if (number >= scores.size()) fail(Kind::kData, "the inputs have grown while they were read");
      set_value(document, name_, scores[number]);
      return keep_ == 1 || (least_first ? scores[number] < limit : scores[number] >= limit);
    });
    std::cout << output_ << ": " << scores.size() << " documents, " << name_ << " 5% " << significant(at(0.05), 4)
              << ", 25% " << significant(at(0.25), 4) << ", 50% " << significant(at(0.5), 4) << ", 75% "
              << significant(at(0.75), 4) << ", 95% " << significant(at(0.95), 4);
    if (keep_ < 1) std::cout << "; kept " << (least_first ? "below " : "from ") << significant(limit, 4);
    std::cout << ", in " << human_duration(lines.seconds()) << "\n";
  }

  template <class Keep>
  void write(const Keep& keep) const {
    StagedOutput output(output_, StagedOutput::What::kFile, Kind::kData);
    std::optional<ZstdWriter> zstd;
    std::optional<OutputFile> plain;
    if (compression_of(output_) == Compression::kZstd)
      zstd.emplace(output.staging(), Kind::kData);
    else
      plain.emplace(output.staging(), Kind::kData);
    size_t number = 0;
    std::string text;
    for_batches([&](std::vector<Document>& documents) {
      text.clear();
      for (Document& document : documents) {
        if (!keep(number++, document)) continue;
        append_document_line(document, text);
        text += '\n';
      }
      if (zstd)
        zstd->write(text);
      else
        plain->write(text);
    });
    if (zstd) zstd->finish();
    if (plain) plain->sync(), plain->close();
    output.commit();
  }

  ModelOptions model_;
  std::vector<std::string> inputs_;
  std::string output_, classifier_, label_ = "good", name_, text_key_ = "text";
  double keep_ = 1;
};

}  // namespace

void add_data_classifier(CLI::App& data, Commands& commands) {
  CLI::App* classifier =
      data.add_subcommand("classifier", "train classifiers of texts, evaluate them, and score documents");
  classifier->require_subcommand(1);
  add_command<TrainClassifier>(*classifier, commands, "train", "train a fastText model on labelled texts")
      ->footer("  tokamak data classifier train --input labelled.jsonl --output quality.bin --label good");
  add_command<EvaluateClassifier>(*classifier, commands, "evaluate",
                                  "print a confusion matrix, precision and recall on labelled texts")
      ->footer("  tokamak data classifier evaluate --classifier quality.bin --input held_out.jsonl --label good");
  add_command<ApplyClassifier>(*classifier, commands, "apply",
                               "store the score of each document, by a classifier or by a model's perplexity")
      ->footer(
          "  tokamak data classifier apply --classifier quality.bin --input docs --output scored.jsonl.zst\n"
          "  tokamak data classifier apply --checkpoint runs/small/checkpoints --input docs --output best.jsonl.zst "
          "--keep 50%");
}

}  // namespace tokamak::cli
