// The samples of a run of several stages. Every cell is read at most once an epoch, for any lengths and weights. A
// source continues where the stage before left it.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t kVocab = 65000;
constexpr int64_t kGrid = 32;

struct Stage {
  int64_t length = 0;
  std::vector<SourceOptions> sources;
  int64_t samples = 0;
};

// First tokens of the windows that a stage reads; the tokens of these data sets are all different.
using Windows = std::vector<int32_t>;

class Run {
 public:
  Run(int64_t seed, SampleOrder order) : seed_(seed), order_(order) {}

  // Reads a stage that follows those so far.
  Windows stage(const Stage& stage) {
    if (last_) place_ = same_stream(stage) ? last_->next_in_stream(samples_) : last_->next_stream(samples_);
    last_.emplace(data_options(stage.length, order_), stage.sources, seed_, kVocab, 0, place_);
    sources_ = stage.sources;
    samples_ = stage.samples;
    Windows windows;
    Sample sample;
    for (int64_t k = 0; k < stage.samples; ++k) {
      last_->read(k, sample);
      CHECK(std::ssize(sample.tokens) == stage.length + 1);
      CHECK(sample.targets.front() == sample.tokens[1]);
      windows.push_back(sample.tokens.front());
    }
    return windows;
  }
  const SampleSource& source() const { return *last_; }

 private:
  bool same_stream(const Stage& stage) const {
    const auto same = [](const SourceOptions& a, const SourceOptions& b) {
      return a.path == b.path && a.weight == b.weight;
    };
    return std::equal(sources_.begin(), sources_.end(), stage.sources.begin(), stage.sources.end(), same);
  }

  int64_t seed_;
  SampleOrder order_;
  StagePlace place_ = {.grid_length = kGrid};
  std::optional<SampleSource> last_;
  std::vector<SourceOptions> sources_;
  int64_t samples_ = 0;
};

class Corpora {
 public:
  Corpora() {
    write_dataset(web(), distinct(0, 1601));
    write_dataset(math(), distinct(2000, 641));
  }
  std::string web() const { return dir_.file("web"); }
  std::string math() const { return dir_.file("math"); }

 private:
  static Documents distinct(int32_t first, int32_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return {tokens};
  }
  TempDir dir_;
};

}  // namespace

TEST_CASE("stages of three lengths read each token of a source at most once an epoch") {
  const Corpora corpora;
  for (const SampleOrder order : {SampleOrder::kShuffled, SampleOrder::kSequential}) {
    for (const int64_t seed : {1, 2, 3}) {
      Run run(seed, order);
      std::multiset<int32_t> seen;
      const auto read = [&](const Stage& stage) {
        for (const int32_t first : run.stage(stage)) {
          for (int32_t i = 0; i < stage.length; ++i) seen.insert(first + i);
        }
      };
      const std::vector<SourceOptions> web = {{corpora.web()}}, both = {{corpora.math(), 0.5}, {corpora.web(), 0.5}};
      read({8, web, 40});    // 10 cells of 4 parts
      read({16, web, 21});   // 11 cells, the last one half
      read({32, both, 20});  // 10 of each
      read({8, both, 4});    // 1
      read({32, web, 10});
      // 10 + 11 + 10 + 0 or 1 + 10 of 50 cells of web, 10 or 11 of 20 of math
      for (const int32_t token : std::set<int32_t>(seen.begin(), seen.end())) CHECK(seen.count(token) == 1);
      CHECK(std::ssize(seen) == 320 + 336 + 640 + 32 + 320);
    }
  }
}

TEST_CASE(
    "a stage of the whole grid reads the windows of a run without stages; shorter ones read their parts in turn") {
  const Corpora corpora;
  const std::vector<SourceOptions> web = {{corpora.web()}};
  const SampleSource plain(data_options(kGrid), web, 7, kVocab);
  Windows expected;
  Sample sample;
  for (int64_t k = 0; k < 60; ++k) {
    plain.read(k, sample);
    expected.push_back(sample.tokens.front());
  }
  Run whole(7, SampleOrder::kShuffled);
  Windows found = whole.stage({kGrid, web, 25});
  const Windows rest = whole.stage({kGrid, web, 35});
  found.insert(found.end(), rest.begin(), rest.end());
  CHECK(found == expected);  // a border does not change the stream
  Run parts(7, SampleOrder::kShuffled);
  const Windows short_ones = parts.stage({8, web, 60});
  for (size_t k = 0; k < short_ones.size(); ++k) {
    CHECK(short_ones[k] == expected[k / 4] + 8 * static_cast<int32_t>(k % 4));
  }
}

TEST_CASE("a stage is a function of the stages before it, not of later ones, and its state names what differs") {
  const Corpora corpora;
  const std::vector<SourceOptions> web = {{corpora.web()}}, both = {{corpora.web(), 0.7}, {corpora.math(), 0.3}};
  const auto second = [&](int64_t samples) {
    Run run(5, SampleOrder::kShuffled);
    run.stage({8, web, samples});
    const Windows windows = run.stage({16, both, 30});
    return std::pair(windows, run.source().state_json(12));
  };
  CHECK(second(40) == second(40));
  CHECK(second(40).first == second(39).first);  // within one cell
  CHECK(second(40).first != second(44).first);
  Run run(5, SampleOrder::kShuffled);
  run.stage({8, web, 40});
  run.stage({16, both, 30});
  CHECK(run.source().restore(second(40).second) == 12);
  check_fails(Kind::kData, {"history of", corpora.web(), "[0,11]", "[0,10]"},
              [&] { run.source().restore(second(44).second); });
  const SampleSource first(data_options(8), web, 5, kVocab, 0, {.grid_length = kGrid});
  const SampleSource other(data_options(8), web, 5, kVocab, 0, {.grid_length = 2 * kGrid});
  check_fails(Kind::kData, {"data.grid_length", "32", "64"}, [&] { other.restore(first.state_json(0)); });
}

TEST_CASE("a limit of epochs counts what earlier stages have read") {
  const Corpora corpora;
  const std::vector<SourceOptions> web = {{corpora.web()}}, math = {{corpora.math()}};  // 50 and 20 cells
  Run run(5, SampleOrder::kShuffled);
  run.stage({8, web, 4 * 30});
  run.source().check_epochs(4 * 50, 1);
  check_fails(Kind::kConfig, {"1.02 times", "data.max_epochs is 1"}, [&] { run.source().check_epochs(4 * 51, 1); });
  run.stage({32, math, 5});
  run.stage({32, web, 10});
  run.source().check_epochs(20, 1);
  check_fails(Kind::kConfig, {"1.02 times", "with those of earlier stages"}, [&] { run.source().check_epochs(21, 1); });
}
