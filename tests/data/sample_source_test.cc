// Sample k is a pure function of data, seed, weights and k; and a resume with anything else is refused.
#include "data/sample_source.h"

#include <map>
#include <set>

#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int64_t T = 16;

SampleSource open(const std::vector<SourceOptions>& sources, SampleOrder order = SampleOrder::kShuffled,
                  int64_t seed = 1) {
  return SampleSource(data_options(T, order), sources, seed, 65000);
}

std::vector<int32_t> tokens_of(const SampleSource& source, int64_t k) {
  Sample sample;
  source.read(k, sample);
  return sample.tokens;
}

}  // namespace

TEST_CASE("sequential samples are the text cut into windows, with documents from the index") {
  const TempDir dir;
  Documents documents = numbered_documents(200, 25);
  documents[7] = {11, kEos, 12, kEos, 13, kEos};  // an EOS token inside a document is not the end of it
  write_dataset(dir.path(), documents, {65000, 300});
  const std::vector<int32_t> tokens = concatenated(documents);
  std::set<int64_t> begins;
  int64_t position = 0;
  for (const auto& document : documents) {
    begins.insert(position);
    position += static_cast<int64_t>(document.size());
  }
  const SampleSource source = open({{dir.path()}}, SampleOrder::kSequential);
  REQUIRE(source.windows(0) == (position - 1) / T);
  Sample sample;
  for (int64_t k = 0; k < 2 * source.windows(0); ++k) {
    source.read(k, sample);
    const int64_t first = k % source.windows(0) * T;
    REQUIRE(std::equal(sample.tokens.begin(), sample.tokens.end(), tokens.begin() + first));
    REQUIRE(sample.tokens.size() == T + 1);
    std::vector<int32_t> expected = {0};
    for (int64_t p = first + 1; p < first + T; ++p) {
      if (begins.contains(p)) expected.push_back(static_cast<int32_t>(p - first));
    }
    REQUIRE(sample.document_starts == expected);
  }
}

TEST_CASE("a shuffled epoch holds every window once, and each epoch has an order of its own") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(400, 60));
  const SampleSource sequential = open({{dir.path()}}, SampleOrder::kSequential);
  const SampleSource shuffled = open({{dir.path()}});
  const int64_t W = shuffled.windows(0);
  std::set<std::vector<int32_t>> windows;
  for (int64_t k = 0; k < W; ++k) windows.insert(tokens_of(sequential, k));
  REQUIRE(static_cast<int64_t>(windows.size()) == W);
  std::vector<std::vector<std::vector<int32_t>>> epochs(3);
  for (int64_t k = 0; k < 3 * W; ++k) epochs[static_cast<size_t>(k / W)].push_back(tokens_of(shuffled, k));
  for (const auto& epoch : epochs) {
    CHECK(std::set<std::vector<int32_t>>(epoch.begin(), epoch.end()) == windows);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  CHECK(epochs[0] != epochs[2]);
}

TEST_CASE("the seed decides the order, and nothing else does") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(400, 60));
  const SampleSource a = open({{dir.path()}}, SampleOrder::kShuffled, 1);
  const SampleSource again = open({{dir.path()}}, SampleOrder::kShuffled, 1);
  const SampleSource b = open({{dir.path()}}, SampleOrder::kShuffled, 2);
  int64_t same = 0;
  for (int64_t k = 199; k >= 0; --k) {
    REQUIRE(tokens_of(a, k) == tokens_of(again, k));
    same += tokens_of(a, k) == tokens_of(b, k);
  }
  CHECK(same < 10);
}

TEST_CASE("two data sets with the same number of windows do not share an order") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(400, 60));
  const SampleSource source = open({{dir.path()}, {dir.path()}});  // samples alternate
  int64_t same = 0;
  for (int64_t k = 0; k < 400; k += 2) same += tokens_of(source, k) == tokens_of(source, k + 1);
  CHECK(same < 10);
}

TEST_CASE("a mixture draws from each source by its weight, and repeats the small one") {
  const TempDir dir;
  write_dataset(dir.file("large"), numbered_documents(2000, 60));
  write_dataset(dir.file("small"), Documents(20, std::vector<int32_t>(30, 64000)));
  const SampleSource source = open({{dir.file("large"), 0.9}, {dir.file("small"), 0.1}});
  int64_t small = 0;
  for (int64_t k = 0; k < 2000; ++k) small += tokens_of(source, k)[0] == 64000;
  CHECK(small == 200);
  CHECK(source.windows(1) == 37);
  CHECK(source.epochs(1, 2000) == Approx(200.0 / 37));
  CHECK(source.tokens() == source.dataset(0).tokens() + 600);
}

TEST_CASE("a source that would be repeated too often stops the run before it begins") {
  const TempDir dir;
  write_dataset(dir.path(), Documents(20, std::vector<int32_t>(30, 5)));
  const SampleSource source = open({{dir.path()}});
  CHECK_NOTHROW(source.check_epochs(74, 2));
  CHECK_NOTHROW(source.check_epochs(1000, 0));
  check_fails(Kind::kConfig, {dir.path(), "(data.sources[0])", "2.03 times", "75", "37", "max_epochs"},
              [&] { source.check_epochs(75, 2); });
}

TEST_CASE("a source's own limit of epochs stops the run, with the source, its share and its epochs") {
  const TempDir dir;
  write_dataset(dir.file("small"), Documents(20, std::vector<int32_t>(30, 5)));
  write_dataset(dir.file("large"), numbered_documents(2000, 60));
  SourceOptions small{dir.file("small"), 1};
  small.max_epochs = 2;
  const SampleSource source = open({{dir.file("large"), 3}, small});
  CHECK_NOTHROW(source.check_epochs(4 * 74, 0));
  check_fails(
      Kind::kConfig,
      {dir.file("small"), "2.03 times", "75 of its 300 samples (25.00 %)", "37", "data.sources[1].max_epochs is 2"},
      [&] { source.check_epochs(300, 50); });
  check_fails(Kind::kConfig, {dir.file("small"), "data.max_epochs is 1"}, [&] { source.check_epochs(200, 1); });
}

TEST_CASE("too little text, no text, or two tokenizers are refused") {
  const TempDir dir;
  write_dataset(dir.file("tiny"), {std::vector<int32_t>(T, 5)});
  write_dataset(dir.file("enough"), {std::vector<int32_t>(T + 1, 5)});
  FixtureOptions other;
  other.tokenizer_hash = "ff112233445566778899aabbccddeeff";
  write_dataset(dir.file("other"), {std::vector<int32_t>(T + 1, 5)}, other);
  check_fails(Kind::kData, {dir.file("tiny"), "16 tokens", "17"}, [&] { open({{dir.file("tiny")}}); });
  CHECK(open({{dir.file("enough")}}).windows(0) == 1);
  CHECK(tokens_of(open({{dir.file("enough")}}), 5) == std::vector<int32_t>(T + 1, 5));
  check_fails(Kind::kData,
              {dir.file("enough"), dir.file("other"), other.tokenizer_hash, FixtureOptions().tokenizer_hash}, [&] {
                open({{dir.file("enough")}, {dir.file("other")}});
              });
  check_fails(Kind::kConfig, {"empty"}, [&] { open({}); });
  check_fails(Kind::kConfig, {"sequence_length"},
              [&] { SampleSource(data_options(0), std::vector<SourceOptions>{{dir.file("enough")}}, 1, 65000); });
}

TEST_CASE("a state is taken back where everything is as it was, and refused with both values where not") {
  const TempDir dir;
  write_dataset(dir.file("a"), numbered_documents(100, 30));
  write_dataset(dir.file("b"), numbered_documents(101, 30));
  FixtureOptions tokenizer;
  tokenizer.tokenizer_hash = "ff112233445566778899aabbccddeeff";
  write_dataset(dir.file("c"), numbered_documents(100, 30), tokenizer);
  const std::vector<SourceOptions> sources = {{dir.file("a"), 3}, {dir.file("b"), 1}};
  const SampleSource source = open(sources);
  const std::string state = source.state_json(1234);
  CHECK(source.restore(state) == 1234);
  CHECK(open({{dir.file("a"), 0.75}, {dir.file("b"), 0.25}}).restore(state) == 1234);  // the same shares

  const auto refused = [&](const SampleSource& now, const std::vector<std::string>& words) {
    check_fails(Kind::kData, words, [&] { now.restore(state); });
  };
  refused(open({{dir.file("a")}}), {"number of data sets", "2", "1"});
  refused(open({{dir.file("b"), 3}, {dir.file("a"), 1}}),
          {"source 0", source.dataset(0).id(), source.dataset(1).id(), dir.file("b")});
  refused(open({{dir.file("a"), 2}, {dir.file("b"), 1}}), {"share", dir.file("a"), "3", "2"});
  refused(open(sources, SampleOrder::kSequential), {"order", "shuffled", "sequential"});
  refused(SampleSource(data_options(T * 2), sources, 1, 65000), {"sequence_length", "16", "32"});
  refused(open({{dir.file("c"), 3}, {dir.file("c"), 1}}),
          {"tokenizer", tokenizer.tokenizer_hash, FixtureOptions().tokenizer_hash});
  check_fails(Kind::kData, {"seed", "1", "77"}, [&] { open(sources, SampleOrder::kShuffled, 77).restore(state); });
  check_fails(Kind::kCheckpoint, {"cannot be read"}, [&] { source.restore("{}"); });
  check_fails(Kind::kCheckpoint, {"is no JSON"}, [&] { source.restore("nonsense"); });
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  check_fails(Kind::kCheckpoint, {"is no JSON"}, [&] { source.restore("{\"version\": " + deep + "}"); });
}
