// tokamak data tokenize | pack: makes data sets from text, and tables of packed rows. data_files.cc has the rest.
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "config/units.h"
#include "data/dataset.h"
#include "data/manifest.h"
#include "data/order/pack_table.h"
#include "data/prepare/tokenize.h"
#include "tokenizer/tokenizer.h"

namespace tokamak::cli {

namespace {

class Tokenize : public Command {
 public:
  explicit Tokenize(CLI::App* parser) {
    parser
        ->add_option("--input", options_.inputs,
                     "text: .txt and .jsonl files, plain, .gz or .zst, or directories of them")
        ->required()
        ->type_name("PATH");
    parser
        ->add_option(
            "--tokenizer", tokenizer_,
            "SentencePiece BPE model, tokenizer.json, tekken.json, a directory of one, or FILE.tiktoken#PRESET; "
            "its copy goes into the data set")
        ->required()
        ->type_name("FILE");
    parser->add_option("--output", options_.output, "data set to write; with --validation DIR/train and DIR/validation")
        ->required()
        ->type_name("DIR");
    FieldOptions fields(parser);
    options_.fields(fields);
    parser->add_flag("--bos", bos_,
                     "begin each document with the tokenizer's BOS token (its EOS token always ends it)");
    parser
        ->add_option("--eos", choices_.eos,
                     "token that ends each document; default: the EOS token that the tokenizer's files name")
        ->type_name("TOKEN");
    parser
        ->add_option("--specials", specials_,
                     "special tokens written in documents: ids turns them into their ids, text into ordinary text")
        ->check(CLI::IsMember({"ids", "text"}))
        ->capture_default_str();
    parser->add_flag("--overwrite", overwrite_, "replace an existing data set");
  }

  int run() override {
    choices_.specials = specials_ == "text" ? SpecialsPolicy::kText : SpecialsPolicy::kIds;
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(tokenizer_, choices_);
    options_.begin = bos_ ? DocumentBegin::kBos : DocumentBegin::kNothing;
    options_.existing = overwrite_ ? Existing::kReplace : Existing::kRefuse;
    options_.tool = split(version_text(), '\n').front();
    ProgressLines lines;
    const TokenizeReport report = tokenize(*tokenizer, options_, [&](const TokenizeProgress& p) {
      lines.at(p.bytes, p.total_bytes, str(", ", human_count(double(p.tokens)), " tokens"));
    });
    print_faults(report.faults);
    if (report.empty > 0) log::warning("left out ", report.empty, " documents of only white space");
    const int64_t tokens = report.train.tokens() + (report.validation ? report.validation->tokens() : 0);
    const int64_t text_bytes = report.train.text_bytes + (report.validation ? report.validation->text_bytes : 0);
    std::cout << report.files << " file(s), " << human_bytes(report.bytes) << ", " << report.documents
              << " document(s), " << human_count(double(tokens)) << " tokens ("
              << fixed(double(text_bytes) / double(tokens), 2) << " bytes of text a token) in "
              << human_duration(lines.seconds()) << "\n";
    if (report.validation) {
      print_part(options_.output + "/train", report.train);
      print_part(options_.output + "/validation", *report.validation);
    } else {
      print_part(options_.output, report.train);
    }
    return 0;
  }

 private:
  static void print_faults(const std::vector<FileFaults>& files) {
    constexpr size_t kMostFiles = 5;
    for (size_t i = 0; i < files.size() && i < kMostFiles; ++i) {
      const auto& [path, faults] = files[i];
      if (faults.invalid_bytes > 0 || faults.nul_bytes > 0) {
        log::warning(path, ": ", faults.invalid_bytes, " bytes are not UTF-8 and were replaced by U+FFFD, ",
                     faults.nul_bytes, " are NUL: is it text in another encoding, or not text?");
      }
      if (faults.crlf_line_ends > 0) {
        log::info(path, ": ", faults.crlf_line_ends, " line ends of CR LF were read as LF");
      }
    }
    if (files.size() > kMostFiles) log::warning("the same in ", files.size() - kMostFiles, " more files");
  }

  static void print_part(const std::string& directory, const Manifest& manifest) {
    std::cout << directory << ": " << manifest.documents() << " documents, " << manifest.tokens() << " tokens, "
              << manifest.shards.size() << " shard(s), id " << manifest.id() << "\n";
  }

  TokenizeOptions options_;
  std::string tokenizer_;
  TokenizerChoices choices_;
  std::string specials_ = "ids";
  bool bos_ = false;
  bool overwrite_ = false;
};

class PackData : public Command {
 public:
  explicit PackData(CLI::App* parser) {
    parser->add_option("DIR", directory_, "data set, or another program's files as in data.sources")->required();
    add_quantity(parser, "--length", length_, parse_count, "positions of a row: data.sequence_length of the training")
        ->required()
        ->type_name("N");
  }

  int run() override {
    FilePool pool;
    const Dataset data = open_dataset(directory_, std::numeric_limits<int32_t>::max(), pool);
    const int64_t width = token_bytes(data.manifest().token_type);
    ProgressLines lines;
    const PackReport report =
        pack_dataset(data, length_, [&](int64_t done) { lines.at(done * width, data.tokens() * width, ""); });
    std::cout << pack_table_path(directory_, length_) << ": " << report.rows << " rows of " << length_ << " positions, "
              << report.pieces << " pieces of documents, "
              << fixed(100.0 * double(report.positions) / (double(report.rows) * double(length_)), 2)
              << " % filled, in " << human_duration(lines.seconds()) << "\n";
    return 0;
  }

 private:
  std::string directory_;
  int64_t length_ = 0;
};

}  // namespace

void add_data(CLI::App& root, Commands& commands) {
  CLI::App* data = root.add_subcommand(
      "data", "make data sets from text; verify, inspect or convert them and other programs' files");
  data->require_subcommand(1);
  add_command<Tokenize>(*data, commands, "tokenize", "turn text into a data set")
      ->footer("  tokamak data tokenize --input texts --tokenizer tokenizer.model --output data/mine --validation 2%");
  add_command<PackData>(*data, commands, "pack",
                        "write the table of rows that data.packing: best_fit reads beside a data set")
      ->footer("  tokamak data pack data/mine/train --length 8192");
  add_data_prepare(*data, commands);
  add_data_classifier(*data, commands);
  add_data_files(*data, commands);
}

}  // namespace tokamak::cli
