// tokamak bench tokenizer: the speed of a tokenizer's encoder, cold, on fresh text and warm.
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/strings.h"
#include "bench/tokenizer_benchmark.h"
#include "cli/command.h"

namespace tokamak::cli {

namespace {

class BenchTokenizerCommand : public Command {
 public:
  explicit BenchTokenizerCommand(CLI::App* parser) {
    parser->add_option("--tokenizer", tokenizer_, "file of the tokenizer to measure")->required();
    parser->add_option("--first", first_, "text of the first pass; NUL bytes separate documents")->required();
    parser->add_option("--second", second_, "text of the second pass, which has not been seen, and of the third")
        ->required();
    for (const auto& [name, value, help] :
         {std::tuple("--rounds", &options_.rounds, "repetitions with new encoders; the fastest is reported"),
          std::tuple("--threads", &options_.threads, "encoders that run at once, each on all the text")}) {
      parser->add_option(name, *value, help)->capture_default_str()->check(CLI::PositiveNumber);
    }
    parser->add_option("--json", json_, "write the results to this file, too");
  }

  int run() override {
    const std::string first = read_text(first_, Kind::kData);
    const std::string second = read_text(second_, Kind::kData);
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(tokenizer_);
    options_.first = documents_of(first);
    options_.second = documents_of(second);
    const TokenizerTimes times = benchmark_tokenizer(*tokenizer, options_);
    nlohmann::ordered_json json = {{"tokenizer", tokenizer_}, {"threads", options_.threads}};
    for (const TokenizerTimes::Pass& pass : times.passes) {
      std::cout << std::left << std::setw(8) << pass.name << human_si(pass.rate(options_.threads), "B/s") << ", "
                << pass.ids << " ids\n";
      json[std::string(pass.name)] = {{"bytes", pass.bytes}, {"ids", pass.ids}, {"seconds", pass.seconds}};
    }
    if (!json_.empty()) write_text_atomically(json_, json.dump(2) + "\n", Kind::kConfig);
    return 0;
  }

 private:
  std::string tokenizer_, first_, second_, json_;
  TokenizerBenchmarkOptions options_;
};

}  // namespace

void add_bench_tokenizer(CLI::App& bench, Commands& commands) {
  add_command<BenchTokenizerCommand>(bench, commands, "tokenizer",
                                     "a tokenizer's encoder: cold, on fresh text, and warm; processor time")
      ->footer("  tokamak bench tokenizer --tokenizer mine/tokenizer.json --first a.txt --second b.txt");
}

}  // namespace tokamak::cli
