// tokamak tokenizer evaluate: how many tokens several tokenizers need for the same texts.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "base/printable.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "data/text/text_reader.h"
#include "tokenizer/efficiency.h"

namespace tokamak::cli {

namespace {

constexpr int64_t kLargestPart = int64_t{1} << 20;  // bytes of a .txt file that are one text

// The texts of a file, or of all.
struct MeasuredText {
  std::string name;
  TextSize size;
  std::vector<TokenCounts> counts;  // of each tokenizer
};

// The end of a long path, where similar ones differ.
std::string end_of(const std::string& path) {
  constexpr size_t kMost = 60;
  return path.size() <= kMost ? printable(path) : "..." + printable(std::string_view(path).substr(path.size() - kMost));
}

double ratio(int64_t a, int64_t b) { return b > 0 ? double(a) / double(b) : 0; }

class Evaluate : public Command {
 public:
  explicit Evaluate(CLI::App* parser) {
    parser->add_option("--tokenizer", paths_, "tokenizer of any kind; give the option once for each")
        ->required()
        ->type_name("FILE");
    parser->add_option("--input", inputs_, "text: .txt and .jsonl files, plain, .gz or .zst, or directories of them")
        ->required()
        ->type_name("PATH");
    parser->add_option("--json-key", json_key_, "member that holds the text in .jsonl files")->capture_default_str();
    parser->add_flag("--json", json_, "print one JSON object instead of a table");
    parser->footer(
        "  tokamak tokenizer evaluate --tokenizer a/tokenizer.json --tokenizer b/tokenizer.model --input texts\n\n"
        "bytes/token and chars/token: more is better. tokens/word: of words between white space (fertility).\n"
        "parts: share of tokens that are byte pieces (<0x0A>) or parts of a character. unknown: tokens without text.");
  }

  int run() override {
    std::vector<std::unique_ptr<Tokenizer>> tokenizers;
    std::vector<EfficiencyMeter> meters;
    for (const std::string& path : paths_) {
      tokenizers.push_back(load_tokenizer(path));
      meters.emplace_back(*tokenizers.back());
    }
    const std::vector<MeasuredText> files = measure(meters);
    if (json_) {
      print_json(files, tokenizers);
    } else {
      print_table(files);
    }
    return 0;
  }

 private:
  // One entry for each file, and a last one for all.
  std::vector<MeasuredText> measure(std::vector<EfficiencyMeter>& meters) const {
    const StopSignal stop;
    const std::vector<TextFile> files = find_text_files(inputs_);
    int64_t bytes = 0;
    for (const TextFile& file : files) bytes += file.bytes;
    std::vector<MeasuredText> measured;
    MeasuredText total{"total", {}, std::vector<TokenCounts>(meters.size())};
    TextReader reader(files, kLargestPart);
    TextParser parser(json_key_);
    ProgressLines progress;
    for (Document document; reader.next(document);) {
      expect_no_stop(stop);
      if (measured.empty() || measured.back().name != document.file->path) {
        measured.push_back({document.file->path, {}, std::vector<TokenCounts>(meters.size())});
      }
      parser.parse(document);
      const TextSize size = size_of_text(document.text);
      measured.back().size += size;
      total.size += size;
      for (size_t i = 0; i < meters.size(); ++i) {
        const TokenCounts counts = meters[i].count(document.text);
        measured.back().counts[i] += counts;
        total.counts[i] += counts;
      }
      progress.at(reader.bytes_read(), bytes, "");
    }
    measured.push_back(std::move(total));
    return measured;
  }

  void print_table(const std::vector<MeasuredText>& files) const {
    size_t width = 9;
    for (const std::string& path : paths_) width = std::max(width, end_of(path).size());
    const bool alone = files.size() == 2;  // a file, which is the total, too
    for (const MeasuredText& file : std::span(files).first(alone ? 1 : files.size())) {
      std::cout << printable(file.name) << ": " << human_bytes(file.size.bytes) << ", "
                << human_count(double(file.size.characters)) << " characters, " << human_count(double(file.size.words))
                << " words\n"
                << "  " << std::left << std::setw(static_cast<int>(width)) << "tokenizer" << std::right
                << "        tokens  bytes/token  chars/token  tokens/word   parts  unknown\n";
      for (size_t i = 0; i < paths_.size(); ++i) {
        const TokenCounts& counts = file.counts[i];
        std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << end_of(paths_[i]) << std::right
                  << std::setw(14) << counts.tokens << std::setw(13) << fixed(ratio(file.size.bytes, counts.tokens), 3)
                  << std::setw(13) << fixed(ratio(file.size.characters, counts.tokens), 3) << std::setw(13)
                  << fixed(ratio(counts.tokens, file.size.words), 3) << std::setw(7)
                  << fixed(100 * ratio(counts.parts, counts.tokens), 2) << "%" << std::setw(9) << counts.unknown
                  << "\n";
      }
    }
  }

  void print_json(const std::vector<MeasuredText>& files,
                  const std::vector<std::unique_ptr<Tokenizer>>& tokenizers) const {
    using Json = nlohmann::ordered_json;
    Json lists = {{"tokenizers", Json::array()}, {"files", Json::array()}};
    for (const auto& tokenizer : tokenizers) {
      lists["tokenizers"].push_back(
          {{"path", tokenizer->path()}, {"hash", tokenizer->hash()}, {"vocab_size", tokenizer->vocab_size()}});
    }
    for (const MeasuredText& file : files) {
      Json entry = {{"file", file.name},
                    {"bytes", file.size.bytes},
                    {"characters", file.size.characters},
                    {"words", file.size.words},
                    {"tokenizers", Json::array()}};
      for (const TokenCounts& counts : file.counts) {
        entry["tokenizers"].push_back({{"tokens", counts.tokens},
                                       {"bytes_per_token", ratio(file.size.bytes, counts.tokens)},
                                       {"characters_per_token", ratio(file.size.characters, counts.tokens)},
                                       {"tokens_per_word", ratio(counts.tokens, file.size.words)},
                                       {"part_tokens", counts.parts},
                                       {"unknown_tokens", counts.unknown}});
      }
      lists["files"].push_back(entry);
    }
    lists["total"] = lists["files"].back();
    lists["total"].erase("file");
    lists["files"].erase(lists["files"].size() - 1);
    std::cout << lists.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  }

  std::vector<std::string> paths_, inputs_;
  std::string json_key_ = "text";
  bool json_ = false;
};

}  // namespace

void add_tokenizer_evaluate(CLI::App& tokenizer, Commands& commands) {
  add_command<Evaluate>(tokenizer, commands, "evaluate", "how many tokens several tokenizers need for the same texts");
}

}  // namespace tokamak::cli
