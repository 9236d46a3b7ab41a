// Text among a run's sources: what its data set depends on, that it is complete or absent, and that it is made once.
#include "data/prepare/text_sources.h"

#include <sys/file.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "data/stores/inspect.h"
#include "data/verify.h"
#include "support/captured_log.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"
#include "tests/tokenizer/hf_files.h"

using namespace tokamak;

namespace {

const std::string kLines = "{\"text\": \"one two\"}\n{\"text\": \" \"}\n{\"text\": \"three\"}\n";

// A directory with a tokenizer, and text that it reads.
struct Place {
  TempDir dir;
  SourceOptions source;

  Place() {
    put_tokenizer("tokenizer", {});
    write_file(dir.file("web.jsonl"), kLines);
    source = source_at(dir.file("web.jsonl"));
    source.tokenizer = dir.file("tokenizer");
  }
  void put_tokenizer(const std::string& name, const std::vector<std::string>& pieces) const {
    make_directories(dir.file(name), Kind::kData);
    const std::string eos = str(R"([{"id":)", 256 + pieces.size(), R"(,"content":"<eos>","special":true,)",
                                R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false}])");
    write_file(dir.file(name + "/tokenizer.json"), byte_level_json(pieces, {}, eos));
    write_file(dir.file(name + "/tokenizer_config.json"), R"({"eos_token":"<eos>"})");
  }
  std::string cache() const { return dir.file("cache"); }
  TextSource find() const { return find_text_source(source, cache()); }
  std::vector<std::string> in_cache() const { return list_directory(cache(), Kind::kData); }
};

std::optional<TokenizeReport> make(const Place& place, const TextSource& text) {
  return make_data_set(place.source, text, "test", [](const TokenizeProgress&) {});
}

}  // namespace

TEST_CASE("text is recognised by its name, by its format, or in a directory without tokens") {
  const Place place;
  const auto is_text = [&](const std::string& name, SourceFormat format = SourceFormat::kAuto) {
    return is_text_source(source_at(place.dir.file(name), format));
  };
  for (const std::string name : {"a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) CHECK(is_text(name));  // also absent ones
  for (const std::string name : {"a.txt", "a.json", "a.jsonl.bin", "jsonl", "absent"}) CHECK_FALSE(is_text(name));
  CHECK(is_text("anything", SourceFormat::kJsonl));
  CHECK_FALSE(is_text("web.jsonl", SourceFormat::kMegatron));

  make_directories(place.dir.file("web"), Kind::kData);
  CHECK_FALSE(is_text("web"));
  write_file(place.dir.file("web/b.jsonl.gz"), gzip_stored(kLines));
  CHECK(is_text("web"));
  CHECK(detect_format(source_at(place.dir.file("web"))) == SourceFormat::kJsonl);
  write_megatron<uint16_t>(place.dir.file("web/tokens"), {{1, 2}}, 8);
  CHECK_FALSE(is_text("web"));
  write_dataset(place.dir.file("set.jsonl"), {{1, 2, kEos}});  // a data set may have any name
  CHECK_FALSE(is_text("set.jsonl"));
}

TEST_CASE("the data set of plain, gzip and directory text is that of data tokenize") {
  Place place;
  const TextSource text = place.find();
  CHECK((text.files.size() == 1 && text.bytes == std::ssize(kLines) && !text.is_made));
  const auto report = make(place, text);
  REQUIRE(report);
  CHECK((report->documents == 2 && report->empty == 1 && report->train.tokens() == 8 + 6));
  CHECK(verify_dataset(text.data_set).problems.empty());
  CHECK(place.find().is_made);
  CHECK_FALSE(make(place, text));  // nothing to do

  TokenizeOptions options;
  options.inputs = {place.source.path};
  options.output = place.dir.file("tokenized");
  const std::string id = tokenize(*load_tokenizer(place.source.tokenizer), options).train.id();
  CHECK(report->train.id() == id);
  write_file(place.dir.file("web.jsonl.gz"), gzip_stored(kLines));
  make_directories(place.dir.file("web"), Kind::kData);
  write_file(place.dir.file("web/part.jsonl"), kLines);
  for (const std::string path : {"web.jsonl.gz", "web"}) {
    place.source.path = place.dir.file(path);
    CHECK(make(place, place.find())->train.id() == id);
  }
}

TEST_CASE("the manifest of text is its tokenizer's, and the text itself is not opened as tokens") {
  Place place;
  const Manifest manifest = read_source_manifest(place.source);
  CHECK((manifest.vocab_size > 256 && manifest.eos_id >= 256 && manifest.shards.empty()));
  make(place, place.find());
  CHECK(read_source_manifest(source_at(place.find().data_set)).tokenizer.hash == manifest.tokenizer.hash);
  FilePool pool;
  check_fails(Kind::kData, {"web.jsonl", "is text, not tokens"}, [&] { open_source(place.source, pool); });
  check_fails(Kind::kData, {"web.jsonl", "is text, not tokens"}, [&] { verify_source(place.source); });
  std::filesystem::remove(place.source.path);
  CHECK(read_source_manifest(place.source).vocab_size == manifest.vocab_size);
  check_fails(Kind::kData, {"web.jsonl", "does not exist"}, [&] { place.find(); });
  place.source.tokenizer = "";
  check_fails(Kind::kConfig, {"web.jsonl", "no tokenizer"}, [&] { read_source_manifest(place.source); });
}

TEST_CASE("text that changed, another name and another tokenizer have other data sets") {
  Place place;
  const TextSource first = place.find();
  CHECK(place.find().data_set == first.data_set);
  std::vector<std::string> seen = {first.data_set};
  const auto expect_new = [&] {
    const std::string now = place.find().data_set;
    CHECK(std::count(seen.begin(), seen.end(), now) == 0);
    seen.push_back(now);
  };
  const auto time = std::filesystem::last_write_time(place.source.path);
  std::string other = kLines;
  other[other.find("one")] = 'O';
  write_file(place.source.path, other);
  std::filesystem::last_write_time(place.source.path, time);
  expect_new();  // other bytes, with the old size and time
  std::filesystem::last_write_time(place.source.path, time + std::chrono::seconds(1));
  expect_new();
  write_file(place.source.path, kLines + "\n");
  std::filesystem::last_write_time(place.source.path, time);
  expect_new();
  place.put_tokenizer("other", {"ab"});
  place.source.tokenizer = place.dir.file("other");
  expect_new();
  std::filesystem::rename(place.dir.file("web.jsonl"), place.dir.file("news.jsonl"));
  place.source.path = place.dir.file("news.jsonl");
  expect_new();
}

TEST_CASE("after bad text nothing but the lock is in the cache, and the mended text is tokenized") {
  const Place place;
  write_file(place.source.path, kLines + "{\"text\": \"cut\n" + kLines);
  check_fails(Kind::kData, {"web.jsonl:4"}, [&] { make(place, place.find()); });
  REQUIRE(place.in_cache().size() == 1);
  CHECK(place.in_cache()[0].ends_with(".lock"));
  write_file(place.source.path, kLines + kLines);
  CHECK(make(place, place.find())->documents == 4);
}

TEST_CASE("what an interrupted process has left is no data set") {
  const Place place;
  const TextSource text = place.find();
  const std::string left = text.data_set + ".tokamak-tmp-host.20260101T000000Z.1";
  make_directories(left, Kind::kData);
  write_file(left + "/manifest.json", "{}");
  CHECK_FALSE(place.find().is_made);
  CapturedLog log;
  CHECK(make(place, text)->documents == 2);
  CHECK(log.text().find("left by an interrupted run") != std::string::npos);
  CHECK_FALSE(exists(left));
}

TEST_CASE("several threads that want one data set get it, and one of them makes it") {
  const Place place;
  const TextSource text = place.find();
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { made += make(place, text) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 1);
  CHECK(verify_dataset(text.data_set).problems.empty());
  CHECK(place.in_cache().size() == 1);  // no lock is left
}

TEST_CASE("who waits for another process may give up, and goes on when the data set appears") {
  const Place place;
  const TextSource text = place.find();
  make_directories(place.cache(), Kind::kData);
  const Descriptor lock(::open((text.data_set + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  const CapturedLog quiet;
  check_fails(Kind::kStopped, {"enough"}, [&] {
    make_data_set(place.source, text, "test", [](const TokenizeProgress&) { fail(Kind::kStopped, "enough"); });
  });
  CHECK_FALSE(exists(text.data_set));
  int waited = 0;
  const auto appears = [&](const TokenizeProgress& progress) {
    CHECK(progress.bytes == 0);
    if (++waited == 2) write_dataset(text.data_set, {{1, 2, kEos}});
  };
  CHECK_FALSE(make_data_set(place.source, text, "test", appears));
  CHECK(waited == 2);
}

TEST_CASE("an estimate of uniform text is near its data set") {
  Place place;
  std::string lines;
  for (int i = 0; i < 60'000; ++i)
    lines += "{\"text\": \"sixty bytes of text in this line, and then a number " + std::to_string(100000 + i) + "\"}\n";
  write_file(place.source.path, lines);  // 4.5 MB; a sample has 2 MiB
  const TextSource text = place.find();
  const TextEstimate estimate = estimate_data_set(place.source, text);
  const auto report = make(place, text);
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(text.data_set)) {
    if (!file.path().string().ends_with("tokenizer.json")) bytes += static_cast<int64_t>(file.file_size());
  }
  CHECK(double(estimate.tokens) == Approx(double(report->train.tokens())).epsilon(0.001));
  CHECK(double(estimate.bytes) == Approx(double(bytes)).epsilon(0.01));
  write_file(place.source.path, "{\"other\": \"key\"}\n");
  check_fails(Kind::kData, {"web.jsonl:1", "other"}, [&] { estimate_data_set(place.source, place.find()); });
}
