// tokamak data verify | inspect | convert: checks tokenized data of any format, prints what it holds, and writes it in
// another format.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "config/units.h"
#include "data/sample_source.h"
#include "data/stores/convert.h"
#include "data/stores/inspect.h"
#include "tokenizer/tokenizer.h"
#include "train/run_data.h"

namespace tokamak::cli {

namespace {

constexpr int64_t kAnyVocabulary = int64_t{1} << 31;

// The data sets at a directory: itself, or its training and held-out parts.
std::vector<std::string> data_sets_at(const std::string& directory) {
  if (exists(directory + "/" + kDatasetManifest)) return {directory};
  std::vector<std::string> out;
  for (const std::string part : {"/train", "/validation"}) {
    if (exists(directory + part + "/" + kDatasetManifest)) out.push_back(directory + part);
  }
  return out.empty() ? std::vector<std::string>{directory} : out;  // opening it reports the missing file
}

template <class Enum>
CLI::Option* add_enum(CLI::App* parser, const char* flag, Enum& value, const char* help,
                      const std::vector<std::string>& names = enum_names(Enum{})) {
  return parser
      ->add_option_function<std::string>(
          flag, [&value](const std::string& name) { value = enum_from_name<Enum>(name); }, help)
      ->check(CLI::IsMember(names))
      ->default_str(enum_name(value));
}

// The options that say how files of other programs are read.
void add_source_options(CLI::App* parser, SourceOptions& source) {
  std::vector<std::string> formats = enum_names(SourceFormat{});
  std::erase(formats, enum_name(SourceFormat::kJsonl));  // text, which has no tokens yet
  add_enum(parser, "--format", source.format, "format of the files", formats);
  parser->add_option("--tokenizer", source.tokenizer, "tokenizer of another program's files")->type_name("FILE");
  add_quantity(parser, "--delimiter-id", source.delimiter_id, parse_count,
               "id between documents in files without an index of them")
      ->type_name("N");
  add_enum(parser, "--token-type", source.token_type, "type of the tokens in raw files");
}

class VerifyData : public Command {
 public:
  explicit VerifyData(CLI::App* parser) {
    parser->add_option("DIR", source_.path, "data set, directory of train and validation, or another program's files")
        ->required();
    add_source_options(parser, source_);
  }

  int run() override {
    int64_t problems = 0;
    for (const std::string& path : data_sets_at(source_.path)) {
      ProgressLines lines;
      SourceOptions source = source_;
      source.path = path;
      const SourceReport report =
          verify_source(source, [&](int64_t done, int64_t total) { lines.at(done, total, ""); });
      for (const std::string& problem : report.problems) std::cout << printable(problem, 300) << "\n";
      std::cout << path << ": " << (report.problems.empty() ? "sound" : "DAMAGED") << ", " << report.shards
                << " shard(s), " << report.documents << " documents, " << report.tokens << " tokens, "
                << human_bytes(report.bytes);
      if (report.largest_id >= 0) std::cout << ", largest id " << report.largest_id << " (" << report.checksums << ")";
      std::cout << "\n";
      problems += std::ssize(report.problems);
    }
    if (problems == 0) return 0;
    std::cout.flush();
    fail(Kind::kData, str(source_.path, " is damaged: ", problems, problems == 1 ? " fault" : " faults"),
         "restore these files from the data set's source");
  }

 private:
  SourceOptions source_;
};

class InspectData : public Command {
 public:
  explicit InspectData(CLI::App* parser) {
    parser->add_option("DIR", source_.path, "data set, directory of train and validation, or another program's files")
        ->required();
    add_source_options(parser, source_);
    add_quantity(parser, "--sample", sample_, parse_count, "print window K of the text in stored order, from 0")
        ->type_name("K");
    add_quantity(parser, "--sequence-length", sequence_length_, parse_count, "tokens of that window")
        ->type_name("N")
        ->default_str(print_count(sequence_length_));
    parser->add_flag("--decode", decode_,
                     "print text, decoded by the data set's own tokenizer or --tokenizer, instead of ids");
    parser->add_flag("--lengths", lengths_, "print how many documents have which length; reads all indexes");
  }

  int run() override {
    std::vector<SourceOptions> sources;
    for (const std::string& path : data_sets_at(source_.path)) {
      sources.push_back(source_);
      sources.back().path = path;
    }
    for (const SourceOptions& source : sources) print_source(source);
    if (sample_ >= 0) print_sample(sources.front());
    return 0;
  }

 private:
  void print_source(const SourceOptions& source) const {
    const bool ours = detect_format(source) == SourceFormat::kTokamak;
    if (ours) print_manifest(source.path, read_source_manifest(source));
    if (ours && !lengths_) return;
    FilePool pool;
    const OpenSource open = open_source(source, pool);
    if (!ours) print_files(source, open);
    if (!lengths_) return;
    ProgressLines lines;
    print_lengths(
        document_lengths(open.stores, [&](int64_t done, int64_t total) { lines.at(done, total, " of lengths"); }));
  }

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

  // Prints the facts of other programs' files that need no reading of tokens.
  static void print_files(const SourceOptions& source, const OpenSource& open) {
    const Manifest& m = open.manifest;
    const bool counted =
        std::all_of(m.shards.begin(), m.shards.end(), [](const ShardInfo& s) { return s.documents > 0; });
    std::cout << "path:        " << source.path << "\n"
              << "format:      " << enum_name(open.format) << "\n"
              << "id:          " << m.id() << " (of sizes and a few blocks, not of every token)\n"
              << "tokens:      " << m.tokens() << "\n"
              << "documents:   " << (counted ? str(m.documents()) : std::string("not counted: --lengths does")) << "\n"
              << "vocab_size:  " << (m.vocab_size > 0 ? str(m.vocab_size) : std::string("unknown: give --tokenizer"))
              << "\n"
              << "tokenizer:   " << printable(m.tokenizer.name)
              << (m.tokenizer.hash.empty() ? "" : ", hash " + m.tokenizer.hash) << "\n"
              << "files:       " << open.stores.size() << "\n";
    for (const auto& store : open.stores) {
      const ShardInfo& info = store->info();
      std::cout << "  " << printable(info.name) << "  " << info.tokens << " tokens, ";
      if (info.documents > 0) std::cout << info.documents << " documents, ";
      std::cout << human_bytes(info.bytes) << "\n";
    }
  }

  static void print_lengths(const LengthHistogram& h) {
    int64_t tokens = 0;
    for (const int64_t count : h.tokens) tokens += count;
    std::cout << "lengths:     " << h.documents << " documents, "
              << fixed(double(tokens) / double(std::max<int64_t>(h.documents, 1)), 1) << " tokens each, the longest "
              << h.longest << "\n";
    for (size_t b = 0; b < h.counts.size(); ++b) {
      if (h.counts[b] == 0) continue;
      const uint64_t least = b == 0 ? 0 : uint64_t{1} << (b - 1);
      const uint64_t most = b == 0 ? 0 : 2 * least - 1;
      std::cout << "  " << least << (most > least ? str(" to ", most) : std::string()) << " tokens: " << h.counts[b]
                << " documents (" << fixed(100 * double(h.counts[b]) / double(h.documents), 2) << "%), "
                << fixed(100 * double(h.tokens[b]) / double(std::max<int64_t>(tokens, 1)), 2) << "% of the tokens\n";
    }
  }

  // Prints the window's documents, each after a line with its position.
  void print_sample(const SourceOptions& first) const {
    if (sequence_length_ < 1) fail(Kind::kConfig, "--sequence-length 0: a window has at least 1 token");
    const std::string& directory = first.path;
    const Manifest manifest = read_source_manifest(first);
    DataOptions options;
    options.sequence_length = sequence_length_;
    options.order = SampleOrder::kSequential;
    const std::vector<SourceOptions> sources = {first};
    const SampleSource source(options, sources, 0, manifest.vocab_size > 0 ? manifest.vocab_size : kAnyVocabulary);
    if (sample_ >= source.windows(0)) {
      fail(Kind::kConfig, str("--sample ", sample_, ": ", directory, " has ", source.windows(0), " windows of ",
                              sequence_length_, " tokens, counted from 0"));
    }
    std::unique_ptr<Tokenizer> tokenizer;
    if (decode_) tokenizer = load_tokenizer_of(directory, manifest);
    if (decode_ && !tokenizer) {
      fail(Kind::kData, str("data set ", directory, " holds no tokenizer to decode with"),
           "give --tokenizer, or leave out --decode");
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

  SourceOptions source_;
  int64_t sample_ = -1;
  int64_t sequence_length_ = 512;
  bool decode_ = false;
  bool lengths_ = false;
};

class ConvertData : public Command {
 public:
  explicit ConvertData(CLI::App* parser) {
    parser->add_option("--input", options_.source.path, "data set, or another program's files")
        ->required()
        ->type_name("PATH");
    add_source_options(parser, options_.source);
    add_enum(parser, "--to", options_.to, "format to write")->required();
    parser->add_option("--output", options_.output, "directory to write, which does not exist or is empty")
        ->required()
        ->type_name("DIR");
    shard_tokens_ = add_quantity(parser, "--shard-tokens", options_.shard_tokens, parse_count,
                                 "close a file at the first document end past this many tokens; llmc: after them");
    shard_tokens_->type_name("N")->default_str(print_count(options_.shard_tokens) +
                                               ", llmc: " + print_count(kLlmcShard));
  }

  int run() override {
    if (options_.to == ConvertTo::kLlmc && shard_tokens_->count() == 0) options_.shard_tokens = kLlmcShard;
    options_.tool = split(version_text(), '\n').front();
    StopSignal stop;
    ProgressLines lines;
    const ConvertReport report = convert(options_, [&](int64_t done, int64_t total) {
      expect_no_stop(stop);
      lines.at(done, total, "");
    });
    std::cout << options_.output << ": " << report.documents << " documents, " << report.tokens << " tokens of "
              << report.files << " file(s), as " << enum_name(options_.to) << ", in " << human_duration(lines.seconds())
              << "\n";
    return 0;
  }

 private:
  static constexpr int64_t kLlmcShard = 100'000'000;  // llm.c's own

  ConvertOptions options_;
  CLI::Option* shard_tokens_ = nullptr;  // owned by the parser
};

}  // namespace

void add_data_files(CLI::App& data, Commands& commands) {
  add_command<VerifyData>(data, commands, "verify",
                          "read a data set and check checksums, index, ids and document ends (exit code 3: damaged)")
      ->footer(
          "  tokamak data verify data/mine\n"
          "  tokamak data verify /lab/megatron/code_text_document --tokenizer tokenizer.model");
  add_command<InspectData>(data, commands, "inspect", "print a data set's manifest, its lengths, or one window")
      ->footer(
          "  tokamak data inspect data/mine --lengths\n"
          "  tokamak data inspect /lab/mds/c4 --tokenizer tokenizer.model --sample 0 --decode");
  add_command<ConvertData>(data, commands, "convert", "write tokenized data of any format in another format")
      ->footer(
          "  tokamak data convert --input /lab/fineweb/fineweb_train --to tokamak --tokenizer tokenizer.model --output data/web");
}

}  // namespace tokamak::cli
