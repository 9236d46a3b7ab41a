// Parts of the byte-level training, also for the sanitizers. train_bytes_test.py compares the whole with Hugging Face.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "base/file.h"
#include "support/temp_dir.h"
#include "tokenizer/efficiency.h"
#include "tokenizer/model_builder.h"
#include "tokenizer/train_bytes/learn_merges.h"
#include "tokenizer/train_bytes/pretoken_counter.h"
#include "tokenizer/train_bytes/train_bytes.h"

using namespace tokamak;

namespace {

using Counts = std::map<std::string, int64_t>;

// Cuts after each byte that is a space.
class SpaceScanner final : public Scanner {
 public:
  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    size_t count = 0;
    while (count < ends.size() && at < text.size()) {
      at = std::min(text.find(' ', at), text.size() - 1) + 1;
      ends[count++] = static_cast<uint32_t>(at);
    }
    return count;
  }
};

Counts counts_of(const PretokenCounter& counter) {
  Counts counts;
  for (const CountedText& word : counter.words()) counts[std::string(word.text)] += word.count;
  return counts;
}

std::string random_text(std::mt19937& random, int words, int longest) {
  std::string text;
  for (int i = 0; i < words; ++i) {
    const int length = static_cast<int>(random() % static_cast<unsigned>(longest));
    for (int j = 0; j < length; ++j) text += static_cast<char>('a' + random() % 3);
    text += ' ';
  }
  return text + "end";
}

}  // namespace

TEST_CASE("pretokens of every length are counted, and nothing behind a text is read") {
  const SpaceScanner scanner;
  PretokenCounter counter(scanner);
  Counts expected;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, 1 + round % 40, 1 + round % 40);
    const int64_t times = 1 + round % 3;
    const auto exact = std::make_unique<char[]>(text.size());  // the sanitizer sees its end
    std::memcpy(exact.get(), text.data(), text.size());
    counter.add({exact.get(), text.size()}, times);
    std::vector<uint32_t> ends(text.size());
    size_t begin = 0;
    for (size_t i = 0, n = scanner.scan(text, 0, ends); i < n; begin = ends[i++]) {
      expected[text.substr(begin, ends[i] - begin)] += times;
    }
  }
  CHECK(counts_of(counter) == expected);
  CHECK(counter.distinct() == std::ssize(expected));
  counter.clear();
  CHECK(counts_of(counter).empty());
}

TEST_CASE("sorted runs give each word once with its total, in order, over several passes") {
  const TempDir directory;
  std::mt19937 random(2);
  Counts expected;
  std::vector<std::string> paths;
  for (int run = 0; run < 300; ++run) {
    Counts counts;
    for (int i = 0; i < run % 7; ++i) counts[random_text(random, 2, 9)] += 1 + i;
    std::vector<CountedText> words;
    for (const auto& [text, count] : counts) {
      words.push_back({text, count});
      expected[text] += count;
    }
    std::shuffle(words.begin(), words.end(), random);
    paths.push_back(directory.path() + "/run-" + std::to_string(run));
    write_sorted_run(paths.back(), words);
  }
  Counts found;
  std::string last;
  merge_sorted_runs(paths, 1 << 20, [&](CountedText word) {
    CHECK(last < word.text);
    last = word.text;
    found[last] += word.count;
  });
  CHECK(found == expected);
  CHECK(list_directory(directory.path(), Kind::kData).empty());
}

TEST_CASE("a damaged run of counts is an error with its name and place") {
  const TempDir directory;
  const std::string path = directory.path() + "/run";
  for (const size_t keep : {3, 12, 15}) {
    write_sorted_run(path, {{"abcdef", 3}});
    write_text_atomically(path, read_text(path, Kind::kData).substr(0, keep), Kind::kData);
    CHECK_THROWS_WITH(merge_sorted_runs({path}, 1 << 20, [](CountedText) {}), Catch::Contains(path));
  }
}

// The expected merges are what tokenizers 0.23.3 learns from "aaaa abc abcd aaaaa aaa aa abab" with GPT-2's pattern.
TEST_CASE("runs of a letter are merged as Hugging Face's trainer merges them") {
  WordList words;
  for (const char* word : {"aaaa", " abc", " abcd", " aaaaa", " aaa", " aa", " abab"}) words.add(word, 1);
  LearnOptions options{.vocab_size = 270, .first_pieces = {"<e>"}};
  const LearnedMerges learned = learn_merges(words, options, {});
  std::vector<std::string> merges;
  for (const auto& [left, right] : learned.merges) merges.push_back(learned.pieces[left] + " " + learned.pieces[right]);
  const std::string space = "\xC4\xA0";
  CHECK(merges == std::vector<std::string>{"a a", "a b", space + " aa", space + " ab", space + "ab c", "aa a", "aa aa",
                                           space + "aa a", space + "aa aaa", space + "ab ab", space + "abc d"});
  CHECK(learned.pieces.size() == 1 + 256 + 11);
  CHECK(learned.pieces[0] == "<e>");
  CHECK(learned.last_count == 1);
}

TEST_CASE("counts beyond 32 bits order the merges") {
  WordList words;
  words.add("ab", int64_t{5} << 32);
  words.add("cd", (int64_t{5} << 32) + 1);
  const LearnedMerges learned = learn_merges(words, {.vocab_size = 257}, {});
  CHECK(learned.pieces.back() == "cd");
}

TEST_CASE("a second tokenizer in a directory must have the special tokens of the first, or replace it") {
  const TempDir directory;
  const auto train = [&](const std::string& name, const std::string& eos) {
    std::atomic<bool> given = false;  // threads ask
    const auto next = [&](std::vector<TrainingText>& texts) {
      texts = {{"aa aa aa"}};
      return !given.exchange(true);
    };
    train_bytes(next, {.vocab_size = 258, .eos_token = eos}, directory.file(name), [](int64_t) {});
  };
  const std::string config = directory.file("tokenizer_config.json");
  train("a.json", "<a>");
  train("b.json", "<a>");
  const std::string first = read_text(config, Kind::kData);
  CHECK_THROWS_WITH(train("c.json", "<c>"), Catch::Contains(config) && Catch::Contains(directory.file("c.json")));
  CHECK(read_text(config, Kind::kData) == first);
  CHECK_FALSE(exists(directory.file("c.json")));
  train("a.json", "<c>");
  CHECK(read_text(config, Kind::kData).find("<c>") != std::string::npos);
}

TEST_CASE("invalid bytes become U+FFFD, wherever they stand") {
  for (const size_t at : {0, 5, 31, 32, 40, 63}) {
    std::string text(64, 'x');
    text[at] = '\xFF';
    make_valid_utf8(text);
    CHECK(text == std::string(at, 'x') + "\xEF\xBF\xBD" + std::string(63 - at, 'x'));
  }
  std::string valid = "caf\xC3\xA9 and more than thirty-two bytes of text";
  const std::string before = valid;
  make_valid_utf8(valid);
  CHECK(valid == before);
}

TEST_CASE("characters, words and parts of characters are counted") {
  const TextSize size = size_of_text(" a\xC2\xA0word\xE3\x80\x80\xE4\xB8\xAD\n\xFF");
  CHECK(size.bytes == 16);
  CHECK(size.characters == 11);  // space a U+00A0 w o r d U+3000 U+4E2D LF, and an invalid byte
  CHECK(size.words == 4);
  const TempDir directory;
  ModelBuilder model;
  for (const char* piece : {"\xE2\x96\x81", "a", "b"}) model.add(piece);
  model.add_bytes();
  const auto tokenizer = load_tokenizer(model.write(directory.path() + "/tokenizer.model"));
  EfficiencyMeter meter(*tokenizer);
  const TokenCounts counts = meter.count("ab \xC3\xA9");  // the dummy prefix, a, b, a space, two bytes
  CHECK(counts.tokens == 6);
  CHECK(counts.parts == 2);
  CHECK(counts.unknown == 0);
}

TEST_CASE("a table of counts that grows keeps each count") {
  const BytesPattern pattern = bytes_pattern("gpt2", Digits::kOfPattern);
  const std::unique_ptr<Scanner> scanner = make_scanner(pattern);
  PretokenCounter counter(*scanner);
  constexpr int kWords = 50000;
  for (int64_t round = 1; round <= 2; ++round) {
    for (int i = 0; i < kWords; ++i) counter.add_pretoken({str(i % 2 == 0 ? "" : "a word that is long ", i), round});
  }
  CHECK(counter.distinct() == kWords);
  const std::vector<CountedText> words = counter.words();
  CHECK(std::ssize(words) == kWords);
  CHECK(std::all_of(words.begin(), words.end(), [](const CountedText& word) { return word.count == 3; }));
}
