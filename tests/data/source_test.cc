// Sources of any format: their identity, a mixture of them, and how little is read of large ones.
#include "data/stores/source.h"

#include <filesystem>
#include <fstream>

#include "data/dataset.h"
#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

constexpr int64_t kVocab = 65536;

}  // namespace

TEST_CASE("identity follows type, sizes, counts, delimiter and content, not the place") {
  const TempDir dir;
  const Documents documents = numbered_documents(90, 25);
  FilePool pool;
  const auto id = [&](const std::string& path, int64_t delimiter = -1) {
    SourceOptions source = source_at(path);
    source.delimiter_id = delimiter;
    FilePool fresh;
    return open_dataset(source, kVocab, fresh).id();
  };
  make_directories(dir.file("there"), Kind::kData);
  for (const char* prefix : {"m", "there/m"}) write_megatron<uint16_t>(dir.file(prefix), documents, 8);
  const std::string before = id(dir.file("m"));
  CHECK(id(dir.file("there/m")) == before);
  write_megatron<int16_t>(dir.file("m"), documents, 3);
  CHECK(id(dir.file("m")) != before);
  Documents moved = documents;
  std::swap(moved[3], moved[4]);  // the same sizes
  write_megatron<uint16_t>(dir.file("m"), moved, 8);
  CHECK(id(dir.file("m")) != before);
  const std::vector<int32_t> tokens = concatenated(documents);
  write_file(dir.file("l.bin"), llmc_header(20240520, 1, std::ssize(tokens)) + packed<uint16_t>(tokens));
  CHECK(id(dir.file("l.bin"), 2) != id(dir.file("l.bin"), 3));
}

TEST_CASE("all formats mix in one run, and their samples are those of our shards") {
  const TempDir dir;
  const Documents a = numbered_documents(600, 40), b = numbered_documents(300, 30, 500);
  FixtureOptions unknown;
  unknown.tokenizer_hash = "";
  write_dataset(dir.file("a"), a, unknown);
  write_dataset(dir.file("b"), b, unknown);
  write_megatron<int32_t>(dir.file("m"), a, 4);
  write_datatrove<uint16_t>(dir.file("d.ds"), b);
  const auto options = data_options(32);
  std::vector<SourceOptions> ours = {source_at(dir.file("a")), source_at(dir.file("b"))};
  std::vector<SourceOptions> theirs = {source_at(dir.file("m")), source_at(dir.file("d.ds"))};
  ours[0].weight = theirs[0].weight = 3;
  const SampleSource expected(options, ours, 7, kVocab), found(options, theirs, 7, kVocab);
  Sample x, y;
  for (int64_t k = 0; k < 1500; ++k) {
    expected.read(k, x);
    found.read(k, y);
    REQUIRE(x.tokens == y.tokens);
    REQUIRE(x.document_starts == y.document_starts);
  }
  write_dataset(dir.file("c"), a);
  const std::vector<SourceOptions> clash = {source_at(dir.file("c")), source_at(dir.file("m"))};
  check_fails(Kind::kData, {"different tokenizers", "unknown"}, [&] { SampleSource(options, clash, 7, kVocab); });
}

TEST_CASE("opening a source and reading its first batch takes few bytes of a hundred gigabytes") {
  const TempDir dir;
  const int64_t documents = 5'000'000'000;  // an index of 100 GB of holes: documents of no tokens, and a last one
  const auto resize = [&](const char* name, int64_t bytes) {
    std::ofstream(dir.file(name)).flush();
    std::filesystem::resize_file(dir.file(name), static_cast<uintmax_t>(bytes));
  };
  resize("m.bin", 1'000'000'000);
  resize("m.idx", 42 + 20 * documents);
  {
    std::fstream file(dir.file("m.idx"), std::ios::in | std::ios::out | std::ios::binary);
    const auto put = [&](int64_t at, auto value) {
      file.seekp(at);
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
    };
    file.write("MMIDIDX\0\0", 9);
    put(9, int64_t{1});
    put(17, uint8_t{8});
    put(18, documents);
    put(26, documents + 1);
    put(34 + 4 * (documents - 1), int32_t{500'000'000});
    put(34 + 12 * documents + 8 * documents, documents);
  }
  const auto bytes_read = [] {
    std::string word;
    int64_t bytes = -1;
    std::ifstream("/proc/self/io") >> word >> bytes;  // rchar: what read and pread returned
    return bytes;
  };
  const int64_t before = bytes_read();
  const SampleSource source(data_options(4096), std::vector<SourceOptions>{source_at(dir.file("m"))}, 7, kVocab);
  Sample sample;
  for (int64_t k = 0; k < 8; ++k) source.read(k, sample);
  CHECK(sample.tokens.size() == 4097);
  REQUIRE(before >= 0);
  CHECK(bytes_read() - before < 1 << 20);
}
