// tokamak data tokenize | verify | inspect: makes data sets from text, checks them, and prints their contents.
#include <iostream>
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
#include "data/manifest.h"
#include "data/prepare/tokenize.h"
#include "data/sample_source.h"
#include "data/verify.h"
#include "tokenizer/tokenizer.h"
#include "train/run_data.h"

namespace tokamak::cli {

namespace {

// The data sets at a directory: itself, or its training and held-out parts.
std::vector<std::string> data_sets_at(const std::string& directory) {
  if (exists(directory + "/" + kDatasetManifest)) return {directory};
  std::vector<std::string> out;
  for (const std::string part : {"/train", "/validation"}) {
    if (exists(directory + part + "/" + kDatasetManifest)) out.push_back(directory + part);
  }
  return out.empty() ? std::vector<std::string>{directory} : out;  // opening it reports the missing file
}

class Tokenize : public Command {
 public:
  explicit Tokenize(CLI::App* parser) {
    parser->add_option("--input", options_.inputs, "text: .txt and .jsonl files, or directories of them")
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
    std::cout << report.files << " files, " << human_bytes(report.bytes) << ", " << report.documents << " documents, "
              << human_count(double(tokens)) << " tokens (" << fixed(double(report.bytes) / double(tokens), 2)
              << " bytes a token) in " << human_duration(lines.seconds()) << "\n";
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

class VerifyData : public Command {
 public:
  explicit VerifyData(CLI::App* parser) {
    parser->add_option("DIR", directory_, "data set, or directory of train and validation")->required();
  }

  int run() override {
    int64_t problems = 0;
    for (const std::string& directory : data_sets_at(directory_)) {
      ProgressLines lines;
      const VerifyReport report =
          verify_dataset(directory, [&](int64_t done, int64_t total) { lines.at(done, total, ""); });
      for (const std::string& problem : report.problems) std::cout << printable(problem, 300) << "\n";
      std::cout << directory << ": " << (report.problems.empty() ? "sound" : "DAMAGED") << ", " << report.shards
                << " shard(s), " << report.documents << " documents, " << report.tokens << " tokens, "
                << human_bytes(report.bytes) << "\n";
      problems += std::ssize(report.problems);
    }
    if (problems == 0) return 0;
    std::cout.flush();
    fail(Kind::kData, str(directory_, " is damaged: ", problems, problems == 1 ? " fault" : " faults"),
         "restore these files from the data set's source");
  }

 private:
  std::string directory_;
};

class InspectData : public Command {
 public:
  explicit InspectData(CLI::App* parser) {
    parser->add_option("DIR", directory_, "data set, or directory of train and validation")->required();
    add_quantity(parser, "--sample", sample_, parse_count, "print window K of the text in stored order, from 0")
        ->type_name("K");
    add_quantity(parser, "--sequence-length", sequence_length_, parse_count, "tokens of that window")
        ->type_name("N")
        ->default_str(print_count(sequence_length_));
    parser->add_flag("--decode", decode_, "print text, decoded by the data set's own tokenizer, instead of ids");
  }

  int run() override {
    const std::vector<std::string> directories = data_sets_at(directory_);
    for (const std::string& directory : directories) print_manifest(directory, read_manifest(directory));
    if (sample_ >= 0) print_sample(directories.front());
    return 0;
  }

 private:
  static void print_manifest(const std::string& directory, const Manifest& m) {
    const auto id_text = [](int32_t id) { return id < 0 ? std::string("none") : str(id, " in each document"); };
    std::cout << "path:        " << directory << "\n"
              << "id:          " << m.id() << "\n"
              << "tokens:      " << m.tokens() << "\n"
              << "documents:   " << m.documents() << " (" << fixed(double(m.tokens()) / double(m.documents()), 1)
              << " tokens each)\n"
              << "token type:  " << token_type_name(m.token_type) << "\n"
              << "vocab_size:  " << m.vocab_size << ", largest id " << m.max_token_id() << "\n"
              << "eos_id:      " << id_text(m.eos_id) << "\n"
              << "bos_id:      " << id_text(m.bos_id) << "\n"
              << "tokenizer:   " << printable(m.tokenizer.name) << ", hash " << printable(m.tokenizer.hash) << "\n"
              << "made by:     " << printable(m.tool) << ", " << printable(m.created) << "\n"
              << "shards:      " << m.shards.size() << "\n";
    for (const ShardInfo& shard : m.shards) {
      std::cout << "  " << printable(shard.name) << "  " << shard.tokens << " tokens, " << shard.documents
                << " documents, " << human_bytes(shard.bytes) << ", xxh3_128 " << printable(shard.hash) << "\n";
    }
  }

  // Prints the window's documents, each after a line with its position.
  void print_sample(const std::string& directory) const {
    const Manifest manifest = read_manifest(directory);
    DataOptions options;
    options.sequence_length = sequence_length_;
    options.order = SampleOrder::kSequential;
    const std::vector<SourceOptions> sources = {{directory, 1.0}};
    const SampleSource source(options, sources, 0, manifest.vocab_size);
    if (sample_ >= source.windows(0)) {
      fail(Kind::kConfig, str("--sample ", sample_, ": ", directory, " has ", source.windows(0), " windows of ",
                              sequence_length_, " tokens, counted from 0"));
    }
    std::unique_ptr<Tokenizer> tokenizer;
    if (decode_) tokenizer = load_tokenizer_of(directory, manifest);
    if (decode_ && !tokenizer) {
      fail(Kind::kData, str("data set ", directory, " holds no tokenizer to decode with"), "leave out --decode");
    }
    Sample sample;
    source.read(sample_, sample);
    std::vector<int32_t>& starts = sample.document_starts;
    starts.push_back(static_cast<int32_t>(sequence_length_));
    std::cout << "window " << sample_ << " of " << source.windows(0) << ", of " << sequence_length_ << " tokens:\n";
    for (size_t d = 0; d + 1 < starts.size(); ++d) {
      const auto ids = std::span(sample.tokens).subspan(starts[d], starts[d + 1] - starts[d]);
      std::cout << "--- tokens " << starts[d] << " to " << starts[d + 1] << "\n";
      if (tokenizer) {
        std::cout << tokenizer->decode(ids) << "\n";
        continue;
      }
      for (size_t i = 0; i < ids.size(); ++i) std::cout << (i == 0 ? "" : " ") << ids[i];
      std::cout << "\n";
    }
  }

  std::string directory_;
  int64_t sample_ = -1;
  int64_t sequence_length_ = 512;
  bool decode_ = false;
};

}  // namespace

void add_data(CLI::App& root, Commands& commands) {
  CLI::App* data = root.add_subcommand("data", "make data sets from text, verify or inspect them");
  data->require_subcommand(1);
  add_command<Tokenize>(*data, commands, "tokenize", "turn text into a data set");
  add_command<VerifyData>(*data, commands, "verify",
                          "read a data set and check checksums, index, ids and document ends (exit code 3: damaged)");
  add_command<InspectData>(*data, commands, "inspect", "print a data set's manifest, or one window");
}

}  // namespace tokamak::cli
