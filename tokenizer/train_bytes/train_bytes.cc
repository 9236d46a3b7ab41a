#include "tokenizer/train_bytes/train_bytes.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel_for.h"
#include "base/printable.h"
#include "base/staged.h"
#include "base/utf8.h"
#include "tokenizer/train_bytes/learn_merges.h"
#include "tokenizer/train_bytes/pretoken_counter.h"
#include "tokenizer/train_bytes/sorted_runs.h"
#include "tokenizer/train_bytes/tokenizer_files.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestVocabulary = int64_t{1} << 21;  // tables of each thread have four numbers for each piece
constexpr int64_t kLeastMemory = int64_t{8} << 20;

void need(bool condition, const std::string& what) {
  if (!condition) fail(Kind::kConfig, str("tokenizer training: ", what));
}

SpecialTokens special_tokens(const BytesTrainOptions& options) {
  SpecialTokens special{{}, options.bos_token, options.eos_token};
  for (const std::string& token : {options.bos_token, options.eos_token}) {
    const auto& given = options.special_token;
    if (!token.empty() && std::find(given.begin(), given.end(), token) == given.end()) special.all.push_back(token);
  }
  special.all.insert(special.all.end(), options.special_token.begin(), options.special_token.end());
  std::vector<std::string> sorted = special.all;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  need(twice == sorted.end(),
       twice == sorted.end() ? "" : str("the special token '", printable(*twice), "' is there twice"));
  for (const std::string& token : special.all) {
    need(!token.empty(), "a special token is empty");
    need(is_valid_utf8(token), str("the special token '", printable(token), "' is not UTF-8"));
  }
  return special;
}

std::string config_beside(const std::string& output) { return parent_directory(output) + "/tokenizer_config.json"; }

void check(const BytesTrainOptions& o, const SpecialTokens& special, const std::string& output) {
  const int64_t least = 256 + std::ssize(special.all);
  need(o.vocab_size >= least && o.vocab_size <= kLargestVocabulary,
       str("vocab_size=", o.vocab_size, " must be at least ", least, " and at most ", kLargestVocabulary));
  need(o.min_frequency >= 0, str("min_frequency=", o.min_frequency, " must not be negative"));
  need(o.max_token_length >= 0, str("max_token_length=", o.max_token_length, " must not be negative"));
  need(o.memory >= kLeastMemory, str("memory=", o.memory, " must be at least ", kLeastMemory, " bytes"));
  need(output.ends_with(".json"), str("the output ", output, " must be named *.json"));
  const std::string config = config_beside(output);
  if (exists(output) || !exists(config) || read_text(config, Kind::kData) == render_tokenizer_config(special)) return;
  fail(Kind::kConfig, str(config, " names the special tokens of another tokenizer, and there is no ", output),
       "train into a directory of its own: --output DIR/tokenizer.json");
}

// Counts with all threads. A thread whose table would outgrow its share of the memory writes it to disk, sorted.
class Counting {
 public:
  Counting(const Scanner& scanner, const BytesTrainOptions& options, const std::string& output)
      : scanner_(scanner), output_(output), memory_(options.memory) {}

  void run(const NextTexts& next) {
    const int threads = thread_count();
    for (int t = 0; t < threads; ++t) counters_.emplace_back(scanner_);
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) guarded([&] { count(next, counters_[t]); });
    });
    if (exception_ != nullptr) std::rethrow_exception(exception_);
  }

  // The words of all threads. Call it once, after run().
  WordList take_words(BytesTrainReport& report) {
    for (const PretokenCounter& counter : counters_) report.pretokens += counter.pretokens();
    report.bytes = bytes_;
    WordList list;
    if (runs_.empty()) {
      PretokenCounter& all = counters_[0];
      while (counters_.size() > 1) {
        for (const CountedText& word : counters_.back().words()) all.add_pretoken(word);
        counters_.pop_back();
      }
      const std::vector<CountedText> words = all.words();
      int64_t bytes = 0;
      for (const CountedText& word : words) bytes += std::ssize(word.text);
      list.reserve(std::ssize(words), bytes);
      for (const CountedText& word : words) list.add(word.text, word.count);
      report.distinct = std::ssize(words);
      return list;
    }
    for (PretokenCounter& counter : counters_) spill(counter);
    counters_.clear();
    report.runs = std::ssize(runs_);
    merge_sorted_runs(runs_, memory_, [&](CountedText word) {
      list.add(word.text, word.count);
      ++report.distinct;
    });
    return list;
  }

 private:
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (exception_ == nullptr) exception_ = std::current_exception();
      failed_ = true;
    }
  }

  void count(const NextTexts& next, PretokenCounter& counter) {
    const int64_t share = memory_ / thread_count();
    std::vector<TrainingText> texts;
    while (!failed_ && next(texts)) {
      for (TrainingText& text : texts) {
        bytes_ += std::ssize(text.text);
        make_valid_utf8(text.text);
        counter.add(text.text, text.times);
        if (counter.is_nearly_full() && counter.bytes_after_growth() > share) spill(counter);
      }
    }
  }

  void spill(PretokenCounter& counter) {
    if (counter.distinct() == 0) return;
    std::string path;
    {
      const std::lock_guard lock(mutex_);
      if (!scratch_) scratch_.emplace(output_ + ".counts", StagedOutput::What::kDirectory, Kind::kData);
      path = str(scratch_->staging(), "/run-", runs_.size());
      runs_.push_back(path);
    }
    write_sorted_run(path, counter.words());
    counter.clear();
  }

  const Scanner& scanner_;
  std::string output_;
  int64_t memory_;
  std::vector<PretokenCounter> counters_;  // one of each thread
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of what follows
  std::exception_ptr exception_;
  std::optional<StagedOutput> scratch_;  // the directory of the runs, removed with this
  std::vector<std::string> runs_;
};

}  // namespace

BytesTrainReport train_bytes(const NextTexts& next, const BytesTrainOptions& options, const std::string& output,
                             const std::function<void(int64_t pieces)>& learned_pieces) {
  const SpecialTokens special = special_tokens(options);
  check(options, special, output);
  const BytesPattern pattern = bytes_pattern(options.pattern, options.digits);
  const std::unique_ptr<Scanner> scanner = make_scanner(pattern);
  BytesTrainReport report;
  Stopwatch time;
  std::optional<Counting> counting;
  counting.emplace(*scanner, options, output);
  counting->run(next);
  WordList words = counting->take_words(report);
  counting.reset();
  report.counting_seconds = time.seconds();
  if (report.distinct == 0) fail(Kind::kData, "there is no text to train a tokenizer on");
  time.restart();
  const LearnOptions learn{options.vocab_size, options.min_frequency, options.max_token_length, special.all};
  const LearnedMerges learned = learn_merges(std::move(words), learn, learned_pieces);
  report.merging_seconds = time.seconds();
  report.pieces = std::ssize(learned.pieces);
  report.merges = std::ssize(learned.merges);
  report.last_count = learned.last_count;
  report.merging_bytes = learned.peak_bytes;
  write_text_atomically(output, render_tokenizer_json(learned, pattern, special), Kind::kData);
  write_text_atomically(config_beside(output), render_tokenizer_config(special), Kind::kData);
  return report;
}

}  // namespace tokamak
