// Text becomes a data set that holds it: complete or absent, and the same for any number of threads.
#include "data/prepare/tokenize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/hash.h"
#include "base/lines.h"
#include "data/dataset.h"
#include "data/verify.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

constexpr int32_t kBos = 1;

void put(const std::string& path, const std::string& text) { write_text_atomically(path, text, Kind::kData); }

// Bytes as tokens: id = byte + 3.
class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(int32_t bos_id = kBos, int32_t eos_id = kEos) : Tokenizer(info_of(bos_id, eos_id)) {}

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += id == kEos ? '|' : id == kBos ? '^' : static_cast<char>(id - 3);
    return text;
  }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<ByteEncoder>(); }
  std::unique_ptr<StreamDecoder> make_stream_decoder() const override { return nullptr; }  // `tokenize` decodes nothing
  std::string copy_files(const std::string& directory) const override {
    put(directory + "/tokenizer.model", "a model");
    return "tokenizer.model";
  }
  std::vector<std::pair<std::string, std::string>> settings() const override { return {}; }

 private:
  struct ByteEncoder final : Encoder {
    void encode(std::string_view text, std::vector<int32_t>& ids) override {
      for (const char c : text) ids.push_back(static_cast<unsigned char>(c) + 3);
    }
  };
  static TokenizerInfo info_of(int32_t bos_id, int32_t eos_id) {
    static const std::string path = [] {
      static const TempDir dir;
      put(dir.file("bytes"), "a model");
      return dir.file("bytes");
    }();
    return {path, xxh3_128_hex(std::as_bytes(std::span("a model", 7))), 259, -1, bos_id, eos_id};
  }
  std::string_view piece_at(int32_t) const override { return ""; }
  PieceType kind_at(int32_t) const override { return PieceType::kNormal; }
};

std::string jsonl(int64_t documents) {
  std::string out;
  for (int64_t i = 0; i < documents; ++i) {
    out += "{\"text\": \"document " + std::to_string(i) + std::string(static_cast<size_t>(i % 50), '.') + "\"}\n";
  }
  return out;
}

// The documents of a data set, as text between the EOS tokens.
std::vector<std::string> texts_of(const std::string& directory) {
  FilePool pool;
  const Dataset dataset = open_dataset(directory, 259, pool);
  std::vector<int32_t> ids(static_cast<size_t>(dataset.tokens()));
  dataset.read(0, ids);
  std::vector<int32_t> starts;
  dataset.document_starts(0, dataset.tokens(), starts);
  starts.push_back(static_cast<int32_t>(ids.size()));
  std::vector<std::string> out;
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    const auto document =
        std::span(ids).first(static_cast<size_t>(starts[d + 1])).subspan(static_cast<size_t>(starts[d]));
    out.push_back(ByteTokenizer().decode(document));
  }
  return out;
}

TokenizeOptions options_for(const TempDir& dir, const std::string& input) {
  TokenizeOptions options;
  options.inputs = {dir.file(input)};
  options.output = dir.file("out");
  options.threads = 2;
  return options;
}

}  // namespace

TEST_CASE("every document is there, in order, with its EOS token") {
  const TempDir dir;
  put(dir.file("in.jsonl"), "{\"text\": \"one\"}\n{\"text\": \" \"}\n{\"text\": \"two\"}\n");
  put(dir.file("in.txt"), "three\ffour");
  TokenizeOptions options = options_for(dir, "in.jsonl");
  options.inputs.push_back(dir.file("in.txt"));
  const TokenizeReport report = tokenize(ByteTokenizer(), options);
  CHECK(texts_of(dir.file("out")) == std::vector<std::string>{"one|", "two|", "three|", "four|"});
  CHECK(report.documents == 4);
  CHECK(report.empty == 1);
  CHECK(report.files == 2);
  CHECK_FALSE(report.validation);
  CHECK(report.train.tokens() == 3 + 3 + 5 + 4 + 4);
  CHECK(verify_dataset(dir.file("out")).problems.empty());
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"in.jsonl", "in.txt", "out"});

  options.output = dir.file("with_bos/out");
  options.begin = DocumentBegin::kBos;
  CHECK(tokenize(ByteTokenizer(), options).train.bos_id == kBos);
  CHECK(texts_of(options.output) == std::vector<std::string>{"^one|", "^two|", "^three|", "^four|"});
}

TEST_CASE("the number of threads does not change a byte") {
  const TempDir dir;
  put(dir.file("in.jsonl"), jsonl(60'000));
  std::vector<std::string> ids;
  for (const int64_t threads : {1, 2, 7}) {
    TokenizeOptions options = options_for(dir, "in.jsonl");
    options.output = dir.file("out" + std::to_string(threads));
    options.threads = threads;
    options.validation_fraction = 0.1;
    options.shard_tokens = 300'000;
    options.batch_bytes = 500'000;
    TokenizeProgress last;
    int64_t calls = 0;
    const TokenizeReport report = tokenize(ByteTokenizer(), options, [&](const TokenizeProgress& p) {
      CHECK(p.tokens > last.tokens);
      last = p;
      ++calls;
    });
    CHECK(calls > 3);
    CHECK(last.tokens == report.train.tokens() + report.validation->tokens());
    CHECK(last.bytes == last.total_bytes);
    CHECK(report.train.shards.size() > 3);
    ids.push_back(report.train.id() + report.validation->id());
  }
  CHECK(ids[0] == ids[1]);
  CHECK(ids[0] == ids[2]);
}

TEST_CASE("held-out documents are a fair share, disjoint from the rest, and stay put when text is added") {
  const TempDir dir;
  put(dir.file("in.jsonl"), jsonl(10'000));
  put(dir.file("more.jsonl"), jsonl(12'000));
  TokenizeOptions options = options_for(dir, "in.jsonl");
  options.validation_fraction = 0.05;
  const TokenizeReport report = tokenize(ByteTokenizer(), options);
  CHECK(report.train.documents() + report.validation->documents() == 10'000);
  for (const Manifest& part : {report.train, *report.validation}) {  // a token for each byte, and EOS
    CHECK(part.text_bytes == part.tokens() - part.documents());
  }
  const Manifest read = read_manifest(dir.file("out/train"));
  CHECK((read.text_bytes == report.train.text_bytes && read.id() == report.train.id()));
  CHECK(read.bits_per_byte(2).value() ==
        Approx(2 / std::log(2.0) * static_cast<double>(read.tokens()) / static_cast<double>(read.text_bytes)));
  Manifest unknown = read;
  unknown.text_bytes = 0;
  CHECK((unknown.id() == read.id() && !unknown.bits_per_byte(2)));
  CHECK(std::abs(report.validation->documents() - 500) < 5 * 22);  // five standard deviations
  auto all = texts_of(dir.file("out/train"));
  const auto held = texts_of(dir.file("out/validation"));
  all.insert(all.end(), held.begin(), held.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.size() == 10'000);

  options.inputs = {dir.file("more.jsonl")};
  options.output = dir.file("out2");
  tokenize(ByteTokenizer(), options);
  const auto later = texts_of(dir.file("out2/validation"));
  REQUIRE(later.size() > held.size());
  CHECK(std::equal(held.begin(), held.end(), later.begin()));

  options.output = dir.file("out3");
  options.seed = 5;
  tokenize(ByteTokenizer(), options);
  CHECK(texts_of(dir.file("out3/validation")) != later);
}

TEST_CASE("a part without documents is an error, and leaves nothing") {
  const TempDir dir;
  put(dir.file("in.txt"), "only one document");
  TokenizeOptions options = options_for(dir, "in.txt");
  options.validation_fraction = 0.05;
  check_fails(Kind::kData, {"validation part would be empty", "1 documents", "0.05"},
              [&] { tokenize(ByteTokenizer(), options); });
  options.validation_fraction = 0.999999;
  check_fails(Kind::kData, {"training part would be empty"}, [&] { tokenize(ByteTokenizer(), options); });
  put(dir.file("in.txt"), " \n");
  options.validation_fraction = 0;
  check_fails(Kind::kData, {"hold no text"}, [&] { tokenize(ByteTokenizer(), options); });
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"in.txt"});
}

TEST_CASE("a bad line far into the text ends the work with its name, and leaves nothing") {
  const TempDir dir;
  put(dir.file("in.jsonl"), jsonl(50'000) + "{]\n" + jsonl(1000) + "{[\n");
  for (const int64_t threads : {1, 8}) {
    TokenizeOptions options = options_for(dir, "in.jsonl");
    options.threads = threads;
    check_fails(Kind::kData, {dir.file("in.jsonl") + ":50001", "not valid JSON"},
                [&] { tokenize(ByteTokenizer(), options); });
    CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"in.jsonl"});
  }
}

TEST_CASE("an output directory in use is kept, and --overwrite replaces data sets only") {
  const TempDir dir;
  put(dir.file("in.txt"), "one");
  TokenizeOptions options = options_for(dir, "in.txt");
  make_directories(dir.file("out"), Kind::kData);
  tokenize(ByteTokenizer(), options);  // an empty directory is no obstacle
  check_fails(Kind::kConfig, {dir.file("out"), "not empty"}, [&] { tokenize(ByteTokenizer(), options); });

  put(dir.file("in.txt"), "two");
  options.existing = Existing::kReplace;
  options.output = dir.file("out/");
  tokenize(ByteTokenizer(), options);
  CHECK(texts_of(dir.file("out")) == std::vector<std::string>{"two|"});

  put(dir.file("in.txt"), " ");
  CHECK_THROWS_AS(tokenize(ByteTokenizer(), options), Error);
  CHECK(texts_of(dir.file("out")) == std::vector<std::string>{"two|"});  // a failure keeps what was there

  put(dir.file("in.txt"), "three");
  make_directories(dir.file("precious"), Kind::kData);
  put(dir.file("precious/thesis.tex"), "x");
  options.output = dir.file("precious");
  check_fails(Kind::kConfig, {dir.file("precious"), "other than a data set"},
              [&] { tokenize(ByteTokenizer(), options); });
  options.output = dir.file("in.txt");
  check_fails(Kind::kConfig, {"not a directory"}, [&] { tokenize(ByteTokenizer(), options); });

  make_directories(dir.file("fresh.tokamak-tmp-node7.1/train"), Kind::kData);  // left by an interrupted run
  options.output = dir.file("fresh");
  tokenize(ByteTokenizer(), options);
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"fresh", "in.txt", "out", "precious"});
  CHECK_FALSE(exists(dir.file("fresh/train")));
}

TEST_CASE("a data set carries its tokenizer") {
  const TempDir dir;
  put(dir.file("in.jsonl"), jsonl(200));
  TokenizeOptions options = options_for(dir, "in.jsonl");
  options.validation_fraction = 0.1;
  const ByteTokenizer tokenizer;
  tokenize(tokenizer, options);
  for (const std::string part : {"out/train", "out/validation"}) {
    CHECK(read_manifest(dir.file(part)).tokenizer == TokenizerIdentity{"bytes", tokenizer.hash(), "tokenizer.model"});
    CHECK(read_text(dir.file(part) + "/tokenizer.model", Kind::kData) == "a model");
    CHECK(verify_dataset(dir.file(part)).problems.empty());
  }
}

TEST_CASE("options out of range, and tokenizers that cannot end a document, are refused") {
  const TempDir dir;
  put(dir.file("in.txt"), "one");
  const auto refused = [&](Kind kind, const std::string& word, const std::function<void(TokenizeOptions&)>& change) {
    TokenizeOptions options = options_for(dir, "in.txt");
    change(options);
    check_fails(kind, {word}, [&] { tokenize(ByteTokenizer(), options); });
  };
  refused(Kind::kConfig, "validation share is 1", [](TokenizeOptions& o) { o.validation_fraction = 1; });
  refused(Kind::kConfig, "validation share is -", [](TokenizeOptions& o) { o.validation_fraction = -0.1; });
  refused(Kind::kConfig, "shard", [](TokenizeOptions& o) { o.shard_tokens = 0; });
  refused(Kind::kConfig, "no input", [](TokenizeOptions& o) { o.inputs.clear(); });
  refused(Kind::kConfig, "-1 bytes", [](TokenizeOptions& o) { o.max_document_bytes = -1; });
  const ByteTokenizer endless(kBos, -1), no_begin(-1);
  check_fails(Kind::kData, {"bytes", "end-of-text"}, [&] { tokenize(endless, options_for(dir, "in.txt")); });
  TokenizeOptions options = options_for(dir, "in.txt");
  options.begin = DocumentBegin::kBos;
  check_fails(Kind::kData, {"begin-of-text"}, [&] { tokenize(no_begin, options); });
}

TEST_CASE("the documents are the same wherever the ranges of the threads end") {
  const TempDir dir;
  const std::string lines = "\xEF\xBB\xBF{\"text\": \"first\"}\n\n" + jsonl(60) + "\n{\"text\":\"" +
                            std::string(300, 'x') + "\"}\r\n \n{\"text\": \"last\"}";
  put(dir.file("in.jsonl"), lines);
  TokenizeOptions options = options_for(dir, "in.jsonl");
  tokenize(ByteTokenizer(), options);
  const std::vector<std::string> expected = texts_of(options.output);
  CHECK((expected.size() == 63 && expected.front() == "first|" && expected.back() == "last|"));
  options.existing = Existing::kReplace;
  for (const int64_t bytes : {1, 2, 7, 16, 17, 18, 19, 20, 100, 299, 1000}) {
    options.batch_bytes = bytes;
    const TokenizeReport report = tokenize(ByteTokenizer(), options);
    INFO(bytes);
    REQUIRE(texts_of(options.output) == expected);
    REQUIRE(report.bytes == std::ssize(lines));
  }
}

TEST_CASE("an error far into ranges names its line, and a line without end is refused") {
  const TempDir dir;
  put(dir.file("in.jsonl"), jsonl(300) + "{\"text\": \"\\ud800\"}\n" + jsonl(5));
  TokenizeOptions options = options_for(dir, "in.jsonl");
  for (const int64_t bytes : {1, 50, 1 << 20}) {
    options.batch_bytes = bytes;
    check_fails(Kind::kData, {dir.file("in.jsonl") + ":301", "not valid JSON"},
                [&] { tokenize(ByteTokenizer(), options); });
  }
  put(dir.file("endless.jsonl"), jsonl(3));
  std::filesystem::resize_file(dir.file("endless.jsonl"), kLongestLine + 1000);  // a hole of NULs
  options.inputs = {dir.file("endless.jsonl")};
  options.batch_bytes = 2 << 20;
  check_fails(Kind::kData, {dir.file("endless.jsonl") + ":4", "a line of more than 256 MiB"},
              [&] { tokenize(ByteTokenizer(), options); });
}
