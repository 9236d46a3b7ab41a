// tokamak tokenizer train: trains a SentencePiece model or a byte-level BPE on text.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "data/text/text_reader.h"
#include "tokenizer/train.h"
#include "tokenizer/train_bytes/train_bytes.h"

namespace tokamak::cli {

namespace {

constexpr int64_t kTextsAtOnce = int64_t{1} << 20;  // bytes that a thread takes

// "PATH" or "PATH=WEIGHT".
struct WeightedInput {
  std::string path;
  double weight = 1;
};

WeightedInput weighted_input(const std::string& text) {
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos || exists(text)) return {text};
  const Parsed<double> weight = parse_number(text.substr(sign + 1));
  if (!weight.value || !(*weight.value > 0) || !(*weight.value <= 1e6)) {
    fail(Kind::kConfig, str("--input ", text, ": the weight must be a number above 0 and at most a million"));
  }
  return {text.substr(0, sign), *weight.value};
}

// The documents of all inputs, each as often as its input's weight says, for several threads.
class WeightedTexts {
 public:
  WeightedTexts(const std::vector<WeightedInput>& inputs, std::string json_key) : json_key_(std::move(json_key)) {
    std::vector<std::string> paths;
    for (const WeightedInput& input : inputs) {
      paths.push_back(input.path);
      for (const TextFile& file : find_text_files({input.path})) of_file_[file.path].weight = input.weight;
    }
    files_ = find_text_files(paths);
    for (const TextFile& file : files_) total_ += file.bytes;
    reader_.emplace(files_, kTextsAtOnce);
  }

  // A document of a file with weight w counts floor((k + 1) w) - floor(k w) times, k being its number in the file.
  bool next(std::vector<TrainingText>& texts) {
    std::vector<std::pair<Document, int64_t>> documents;
    {
      const std::lock_guard lock(mutex_);
      expect_no_stop(stop_);
      int64_t bytes = 0;
      for (Document document; bytes < kTextsAtOnce && reader_->next(document);) {
        bytes += std::ssize(document.text);
        Input& input = of_file_.at(document.file->path);
        const auto times = static_cast<int64_t>(std::floor(double(input.documents + 1) * input.weight) -
                                                std::floor(double(input.documents) * input.weight));
        ++input.documents;
        ++documents_;
        if (times > 0) documents.emplace_back(std::move(document), times);
      }
      progress_.at(reader_->bytes_read(), total_, " counted");
      if (bytes == 0) return false;
    }
    texts.clear();
    TextParser parser(json_key_);
    for (auto& [document, times] : documents) {
      parser.parse(document);
      texts.push_back({std::move(document.text), times});
    }
    return true;
  }

  int64_t documents() const { return documents_; }

 private:
  struct Input {
    double weight = 1;
    int64_t documents = 0;  // so far
  };

  const StopSignal stop_;
  std::string json_key_;
  std::vector<TextFile> files_;
  std::map<std::string, Input> of_file_;
  int64_t total_ = 0;
  std::mutex mutex_;  // of what follows
  std::optional<TextReader> reader_;
  ProgressLines progress_;
  int64_t documents_ = 0;
};

// Logs how far the merging is.
class MergingLines {
 public:
  explicit MergingLines(int64_t total) : total_(total) {}
  void at(int64_t pieces) {
    if (first_ < 0) first_ = pieces;
    if (since_.seconds() < ProgressLines::kSecondsBetweenLines || pieces <= first_) return;
    since_.restart();
    const double left = time_.seconds() * double(total_ - pieces) / double(pieces - first_);
    log::info(pieces, " of ", total_, " pieces, ", human_duration(left), " to go");
  }

 private:
  int64_t total_, first_ = -1;
  Stopwatch time_, since_;
};

// Collects the names of the fields of an options struct, as options of the command line.
struct FieldFlags {
  std::vector<std::string> flags;
  template <class T>
  void operator()(const char* name, T&, const char*) {
    std::string flag = str("--", name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    flags.push_back(flag);
  }
};

class Train : public Command {
 public:
  explicit Train(CLI::App* parser) : parser_(parser) {
    parser
        ->add_option(
            "--input", inputs_,
            "text: .txt and .jsonl files, plain, .gz or .zst, or directories of them; bytelevel: PATH=WEIGHT counts "
            "each document WEIGHT times, or takes a share of them")
        ->required()
        ->type_name("PATH");
    parser->add_option("--output", output_, "file to write: a model, or tokenizer.json for bytelevel")
        ->required()
        ->type_name("FILE");
    parser
        ->add_option("--type", type_,
                     "sentencepiece: a BPE model as Llama 2's; bytelevel: a BPE as GPT-2's and Llama 3's, as "
                     "tokenizer.json")
        ->check(CLI::IsMember({"sentencepiece", "bytelevel"}))
        ->capture_default_str();
    FieldOptions fields(parser);
    pieces_.fields(fields);
    bytes_.fields(fields);
    parser->add_option("--digits", digits_, "how digits are cut: as the pattern does, each alone, or up to three")
        ->check(CLI::IsMember(enum_names(Digits{})))
        ->capture_default_str();
  }

  int run() override {
    const bool bytelevel = type_ == "bytelevel";
    refuse_options_of_other_type(bytelevel);
    make_directories(parent_directory(output_), Kind::kConfig);  // before the work that its error would lose
    log::info("training a tokenizer of ", pieces_.vocab_size, " pieces on ", join(inputs_, ", "));
    return bytelevel ? train_bytelevel() : train_sentencepiece();
  }

 private:
  int train_sentencepiece();
  int train_bytelevel();

  void refuse_options_of_other_type(bool bytelevel) {
    FieldFlags of_pieces, of_bytes;
    pieces_.fields(of_pieces);
    bytes_.fields(of_bytes);
    of_bytes.flags.push_back("--digits");
    for (const std::string& flag : bytelevel ? of_pieces.flags : of_bytes.flags) {
      if (bytelevel && (flag == "--vocab-size" || flag == "--json-key")) continue;
      if (parser_->get_option(flag)->count() == 0) continue;
      fail(Kind::kConfig, str(flag, " is no option of --type ", type_),
           bytelevel ? "" : "--type bytelevel trains a byte-level BPE");
    }
    if (!bytelevel && output_.ends_with(".json")) {
      log::warning(output_, " will be a SentencePiece model; --type bytelevel writes a tokenizer.json");
    }
  }

  CLI::App* parser_;
  TokenizerTrainOptions pieces_;
  BytesTrainOptions bytes_;
  std::vector<std::string> inputs_;
  std::string output_, type_ = "sentencepiece", digits_ = "pattern";
};

int Train::train_sentencepiece() {
  const Stopwatch time;
  const std::vector<TextFile> files = find_text_files(inputs_);
  TextLines lines(files, pieces_.json_key);
  const auto next = [&](std::string& line) { return lines.next(line); };
  const TokenizerTrainReport report = train_tokenizer(next, pieces_, output_);
  if (report.too_long > 0) {
    log::warning("left out ", report.too_long, " of ", report.lines,
                 " lines: longer than max_sentence_length=", pieces_.max_sentence_length, " bytes");
  }
  if (report.with_reserved > 0) {
    log::warning("left out ", report.with_reserved, " of ", report.lines, " lines: they contain U+2585");
  }
  std::cout << output_ << ": " << pieces_.vocab_size << " pieces from " << human_count(double(report.lines))
            << " lines (" << human_bytes(report.bytes) << ") in " << human_duration(time.seconds()) << ", hash "
            << report.hash << "\n";
  return 0;
}

int Train::train_bytelevel() {
  bytes_.vocab_size = pieces_.vocab_size;
  bytes_.digits = enum_from_name<Digits>(digits_);
  std::vector<WeightedInput> inputs;
  for (const std::string& input : inputs_) inputs.push_back(weighted_input(input));
  WeightedTexts texts(inputs, pieces_.json_key);
  const auto next = [&](std::vector<TrainingText>& out) { return texts.next(out); };
  std::optional<MergingLines> lines;
  const BytesTrainReport report = train_bytes(next, bytes_, output_, [&](int64_t pieces) {
    if (!lines) lines.emplace(bytes_.vocab_size);
    lines->at(pieces);
  });
  if (report.pieces < bytes_.vocab_size) {
    log::warning("the vocabulary has ", report.pieces, " pieces instead of ", bytes_.vocab_size,
                 ": no other pair of pieces occurs ", std::max<int64_t>(1, bytes_.min_frequency), " times");
  }
  std::cout << output_ << ": " << report.pieces << " pieces, " << report.merges << " merges, from "
            << human_count(double(texts.documents())) << " texts (" << human_bytes(report.bytes) << "), "
            << human_count(double(report.pretokens)) << " pretokens, " << human_count(double(report.distinct))
            << " distinct";
  if (report.runs > 0) std::cout << ", in " << report.runs << " files of counts";
  std::cout << "; counting " << human_duration(report.counting_seconds) << ", merging "
            << human_duration(report.merging_seconds) << " in " << human_bytes(report.merging_bytes) << "\n";
  return 0;
}

}  // namespace

void add_tokenizer_train(CLI::App& tokenizer, Commands& commands) {
  add_command<Train>(tokenizer, commands, "train", "train a SentencePiece BPE model, or a byte-level BPE, on text")
      ->footer(
          "  tokamak tokenizer train --input texts --vocab-size 4096 --output tokenizer.model\n"
          "  tokamak tokenizer train --type bytelevel --pattern llama3 --input web.jsonl code.jsonl=0.5 --vocab-size 32Ki\n"
          "      --output mine/tokenizer.json\n\n"
          "bytelevel also writes tokenizer_config.json beside its output. It names BOS and EOS: a directory holds one\n"
          "such tokenizer.");
}

}  // namespace tokamak::cli
