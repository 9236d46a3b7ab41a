// A data set matches its manifest, or it is refused with the reason.
#include "data/dataset.h"

#include "base/hash.h"
#include "data/verify.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

// Replaces the first occurrence of `from` in the manifest.
void edit_manifest(const std::string& directory, const std::string& from, const std::string& to) {
  std::string text = read_text(directory + "/manifest.json", Kind::kData);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  write_text_atomically(directory + "/manifest.json", text, Kind::kData);
}

void check_refused(const std::string& directory, const std::vector<std::string>& words, int64_t vocab_size = 65000) {
  FilePool pool;
  check_fails(Kind::kData, words, [&] { open_dataset(directory, vocab_size, pool); });
}

void check_problems(const std::string& directory, size_t count, const std::vector<std::string>& words) {
  const VerifyReport report = verify_dataset(directory);
  INFO(join(report.problems, "\n"));
  CHECK(report.problems.size() == count);
  for (const std::string& word : words) CHECK(join(report.problems, "\n").find(word) != std::string::npos);
}

}  // namespace

TEST_CASE("a manifest reads back as it was written") {
  const TempDir dir;
  const Manifest written = write_dataset(dir.path(), numbered_documents(500, 40), {65000, 2000});
  const Manifest read = read_manifest(dir.path());
  CHECK(read.shards.size() > 3);
  CHECK(read.shards == written.shards);
  CHECK(read.tokenizer == written.tokenizer);
  CHECK(read.eos_id == kEos);
  CHECK(read.bos_id == -1);
  CHECK(read.vocab_size == 65000);
  CHECK(read.id() == written.id());
  CHECK(read.documents() == 500);
}

TEST_CASE("the identity follows the tokens and the tokenizer, not the time of writing") {
  const TempDir dir;
  const Manifest a = write_dataset(dir.file("a"), {{5, 6, kEos}});
  Manifest later = a;
  later.created = "2099-01-01T00:00:00Z";
  later.tool = "another";
  later.tokenizer.name = "renamed";
  CHECK(later.id() == a.id());
  CHECK(write_dataset(dir.file("b"), {{5, 6, kEos}}).id() == a.id());
  CHECK(write_dataset(dir.file("c"), {{5, 7, kEos}}).id() != a.id());
  CHECK(write_dataset(dir.file("d"), {{5}, {6, kEos}}).id() != a.id());  // same tokens, other documents
  FixtureOptions other;
  other.tokenizer_hash = "ff112233445566778899aabbccddeeff";
  CHECK(write_dataset(dir.file("e"), {{5, 6, kEos}}, other).id() != a.id());
}

TEST_CASE("tokens and documents run across shards as if there were one") {
  const TempDir dir;
  const Documents documents = numbered_documents(300, 30);
  write_dataset(dir.path(), documents, {65000, 500});
  const std::vector<int32_t> tokens = concatenated(documents);
  FilePool pool(2);  // fewer than the shards have files
  const Dataset dataset = open_dataset(dir.path(), 65000, pool);
  REQUIRE(dataset.manifest().shards.size() > 5);
  REQUIRE(dataset.tokens() == static_cast<int64_t>(tokens.size()));
  for (int64_t first = 0; first + 1200 <= dataset.tokens(); first += 113) {
    std::vector<int32_t> out(1200);
    dataset.read(first, out);
    REQUIRE(std::equal(out.begin(), out.end(), tokens.begin() + first));
    std::vector<int32_t> starts;
    dataset.document_starts(first, 1200, starts);
    std::vector<int32_t> expected;
    for (int64_t p = first; p < first + 1200; ++p) {
      if (p == 0 || tokens[static_cast<size_t>(p - 1)] == kEos) expected.push_back(static_cast<int32_t>(p - first));
    }
    REQUIRE(starts == expected);
  }
}

TEST_CASE("a directory without a manifest, or with a foolish one, is refused with the key") {
  const TempDir dir;
  check_refused(dir.path(), {dir.path(), "manifest.json"});
  write_dataset(dir.path(), numbered_documents(50, 30));
  const std::string good = read_text(dir.file("manifest.json"), Kind::kData);
  const auto refused = [&](const std::string& from, const std::string& to, const std::vector<std::string>& words) {
    edit_manifest(dir.path(), from, to);
    check_refused(dir.path(), words);
    write_text_atomically(dir.file("manifest.json"), good, Kind::kData);
  };
  refused("\"vocab_size\"", "\"vocab\"", {"manifest.json", "vocab_size", "missing"});
  refused("\"version\": 1", "\"version\": 2", {"version", "2"});
  refused("\"file\": \"\"", "\"file\": \"../tokenizer.model\"", {"tokenizer", "file", "expected a file name"});
  refused("tokamak-dataset", "other", {"format", "other"});
  refused("uint16", "uint32", {"token_type", "uint32"});
  refused("65000", "\"many\"", {"vocab_size", "many"});
  refused("\"part-00000\"", "\"../part\"", {"shards[0].name", "../part"});
  refused("\"bytes\": ", "\"bytes\": 1", {"shards[0].bytes"});
  refused("\"documents\": 50", "\"documents\": 51", {"documents", "51"});
  refused("\"tokens\": ", "\"tokens\": 4611686018427387904, \"x\": ", {"the bytes of shard 'part-00000' is too large"});
  refused("\"documents\": 50", "\"documents\": 9223372036854775807", {"documents"});
  refused("{", "[", {"not valid JSON"});
  truncate(dir.file("manifest.json"), 100);
  check_refused(dir.path(), {"manifest.json", "not valid JSON"});
}

TEST_CASE("a missing or short shard is found when the data set is opened") {
  const TempDir dir;
  write_dataset(dir.path(), numbered_documents(300, 30), {65000, 1000});
  truncate(dir.file("part-00002.bin"), 64);
  check_refused(dir.path(), {"part-00002.bin", "64 bytes"});
  remove_file(dir.file("part-00001.idx"), Kind::kData);
  check_refused(dir.path(), {"part-00001.idx", "No such file"});
}

TEST_CASE("a vocabulary larger than the model's, or ids larger than the vocabulary, are refused") {
  const TempDir dir;
  write_dataset(dir.path(), {{5, 499, kEos}}, {500, 1000});
  check_refused(dir.path(), {dir.path(), "500", "499"}, 499);
  FilePool pool;
  CHECK_NOTHROW(open_dataset(dir.path(), 512, pool));  // a padded embedding is no harm
  edit_manifest(dir.path(), "\"vocab_size\": 500", "\"vocab_size\": 100");
  check_refused(dir.path(), {"part-00000", "100"}, 512);
  check_fails(Kind::kData, {"token id 500", "500"}, [&] { write_dataset(dir.path(), {{500}}, {500, 1000}); });
}

TEST_CASE("verify passes a sound data set and names every fault of a bad one") {
  const TempDir dir;
  const Documents documents = numbered_documents(3000, 300);
  const auto fresh = [&] { write_dataset(dir.path(), documents, {65000, 100'000}); };
  fresh();
  int64_t read = 0;
  int64_t total = 0;
  const VerifyReport report = verify_dataset(dir.path(), [&](int64_t r, int64_t t) {
    read = r;
    total = t;
  });
  CHECK(report.problems.empty());
  CHECK(report.tokens == static_cast<int64_t>(concatenated(documents).size()));
  CHECK(report.documents == 3000);
  CHECK(report.shards > 3);
  CHECK((read == total && total == report.bytes && total > 2 * report.tokens));

  damage(dir.file("part-00000.bin"), 1000);
  damage(dir.file("part-00001.idx"), 100);
  damage(dir.file("part-00002.sum"), 20);
  check_problems(dir.path(), 3, {"part-00000.bin", "part-00001.idx", "part-00002.sum"});

  fresh();
  edit_manifest(dir.path(), "\"eos_id\": 2", "\"eos_id\": 1");
  check_problems(dir.path(), report.shards, {"ends in id 2", "says 1"});
  fresh();
  edit_manifest(dir.path(), "\"max_token_id\": ", "\"max_token_id\": 1");
  CHECK(verify_dataset(dir.path()).problems.size() == 1);
  fresh();
  edit_manifest(dir.path(), "\"xxh3_128\": \"", "\"xxh3_128\": \"0");
  check_problems(dir.path(), 1, {"part-00000.bin", "manifest says"});
  fresh();
  edit_manifest(dir.path(), "\"file\": \"\"", "\"file\": \"tokenizer.model\"");
  check_problems(dir.path(), 1, {"tokenizer.model", "No such file"});
}

TEST_CASE("verify finds a document without its EOS token") {
  const TempDir dir;
  write_dataset(dir.path(), {{5, kEos}, {6, 7}, {8, kEos}});
  check_problems(dir.path(), 1, {"ends at token 4", "id 7"});
  write_dataset(dir.path(), {{5, kEos}, {6, 7}});
  check_problems(dir.path(), 1, {"last document", "id 7"});
}

TEST_CASE("an interrupted writer leaves no data set") {
  const TempDir dir;
  Manifest head;
  head.vocab_size = 500;
  DatasetWriter writer(dir.path(), head, 100);
  writer.append(std::vector<int32_t>{5, kEos});
  check_refused(dir.path(), {"manifest.json"});
  DatasetWriter empty(dir.path(), head, 100);
  check_fails(Kind::kData, {"no tokens", dir.path()}, [&] { empty.finish(); });
}
