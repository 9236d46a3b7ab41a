// Conversion keeps tokens and documents, in every format, and leaves nothing when it fails.
#include "data/stores/convert.h"

#include "data/stores/inspect.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

ConvertReport converted(const SourceOptions& source, ConvertTo to, const std::string& output,
                        int64_t shard_tokens = 700) {
  ConvertOptions options;
  options.source = source;
  options.to = to;
  options.output = output;
  options.shard_tokens = shard_tokens;
  return convert(options);
}

// The documents of a source, whose files may cut them.
Documents documents_in(const SourceOptions& source) {
  FilePool pool;
  Documents out(1);
  for (const auto& store : open_source(source, pool).stores) {
    std::vector<int32_t> starts;
    store->document_starts(0, 1, 0, starts);
    if (!starts.empty() && !out.back().empty()) out.emplace_back();
    store->for_each_part([&](const DocumentPart& part) {
      std::vector<int32_t> ids(static_cast<size_t>(part.tokens));
      store->read(part.first, int64_t{1} << 31, ids);
      out.back().insert(out.back().end(), ids.begin(), ids.end());
      if (part.ends) out.emplace_back();
    });
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

Documents with_empty_ones() {
  Documents documents = numbered_documents(400, 25);
  for (size_t d = 3; d < documents.size(); d += 5) documents[d].clear();
  return documents;
}

SourceOptions delimited_at(const std::string& path) {
  SourceOptions source = source_at(path);
  source.delimiter_id = kEos;
  return source;
}

}  // namespace

TEST_CASE("documents survive the way through all formats, empty ones and several files among them") {
  const TempDir dir;
  const Documents documents = with_empty_ones();
  write_megatron<int32_t>(dir.file("a"), documents, 4);
  const ConvertReport report = converted(source_at(dir.file("a")), ConvertTo::kDatatrove, dir.file("b"));
  CHECK(report.documents == 400);
  CHECK(report.tokens == std::ssize(concatenated(documents)));
  CHECK(list_directory(dir.file("b"), Kind::kData).size() > 9);
  CHECK(documents_in(source_at(dir.file("b"))) == documents);
  converted(source_at(dir.file("b")), ConvertTo::kMegatron, dir.file("c"));
  CHECK(documents_in(source_at(dir.file("c"))) == documents);
  write_dataset(dir.file("ours"), documents);
  converted(source_at(dir.file("ours")), ConvertTo::kTokamak, dir.file("again"), 1'000'000);
  for (const char* name : {"part-00000.bin", "part-00000.idx", "part-00000.sum"}) {
    CHECK(read_text(dir.file("again/") + name, Kind::kData) == read_text(dir.file("ours/") + name, Kind::kData));
  }
  CHECK(read_manifest(dir.file("again")).id() == read_manifest(dir.file("ours")).id());
}

TEST_CASE("llm.c's files have the delimiter before each document, are cut anywhere and come back whole") {
  const TempDir dir;
  Documents documents = numbered_documents(200, 25);
  documents[3] = {kEos, 5, 6, kEos};  // it stands in front already: both stay
  documents[4] = {kEos};
  documents[5] = {};   // one is added
  documents[6] = {9};  // and here
  Documents expected = documents;
  for (size_t d = 0; d < expected.size(); ++d) {
    auto& ids = expected[d];
    if (d == 3 || d == 4) continue;
    if (!ids.empty() && ids.back() == kEos) ids.pop_back();
    ids.insert(ids.begin(), kEos);
  }
  expected[3] = {kEos, 5, 6};
  expected.insert(expected.begin() + 4, {kEos});  // what remains is a document of its own for any reader
  write_megatron<uint16_t>(dir.file("a"), documents, 8);
  converted(delimited_at(dir.file("a")), ConvertTo::kLlmc, dir.file("b"), 701);
  CHECK(documents_in(delimited_at(dir.file("b"))) == expected);
  FilePool pool;
  const TokenStores stores = open_source(delimited_at(dir.file("b")), pool).stores;
  REQUIRE(stores.size() > 3);
  for (size_t i = 0; i + 1 < stores.size(); ++i) CHECK(stores[i]->tokens() == 701);
  converted(delimited_at(dir.file("b")), ConvertTo::kMegatron, dir.file("c"), 1'000'000);
  CHECK(documents_in(source_at(dir.file("c"))) == expected);
  CHECK(document_lengths(stores).documents == std::ssize(expected));
}

TEST_CASE("a conversion that fails leaves nothing, and names what it lacks") {
  const TempDir dir;
  write_megatron<int32_t>(dir.file("a"), {{5, 6}, {7, 70000}}, 4);
  const SourceOptions source = source_at(dir.file("a"));
  const std::string out = dir.file("out");
  check_fails(Kind::kConfig, {"vocabulary", dir.file("a")}, [&] { converted(source, ConvertTo::kTokamak, out); });
  check_fails(Kind::kConfig, {"llm.c", dir.file("a")}, [&] { converted(source, ConvertTo::kLlmc, out); });
  ConvertOptions options{source, ConvertTo::kMegatron, out};
  CHECK_THROWS_AS(convert(options, [](int64_t, int64_t) { fail(Kind::kStopped, "stopped"); }), Error);
  truncate(dir.file("a.bin"), 12);
  check_fails(Kind::kData, {"a.idx", "12 bytes"}, [&] { converted(source, ConvertTo::kMegatron, out); });
  write_megatron<int32_t>(dir.file("a"), {{}, {}}, 4);
  check_fails(Kind::kData, {"no tokens"}, [&] { converted(source, ConvertTo::kMegatron, out); });
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.bin", "a.idx"});
  make_directories(out, Kind::kData);
  write_file(out + "/mine", "x");
  write_megatron<int32_t>(dir.file("a"), {{5, 6}}, 4);
  check_fails(Kind::kConfig, {out}, [&] { converted(source, ConvertTo::kMegatron, out); });
}

TEST_CASE("lengths are counted by powers of two") {
  const TempDir dir;
  write_megatron<uint16_t>(dir.file("a"), {{}, {1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 4}, {}, std::vector<int32_t>(1000, 7)},
                           8);
  FilePool pool;
  int64_t done = 0, all = -1;
  const LengthHistogram h =
      document_lengths(open_source(source_at(dir.file("a")), pool).stores, [&](int64_t d, int64_t t) {
        done = d;
        all = t;
      });
  CHECK((h.documents == 7 && h.longest == 1000 && done == all && all == 2020));
  CHECK((h.counts[0] == 2 && h.counts[1] == 1 && h.counts[2] == 2 && h.counts[3] == 1 && h.counts[10] == 1));
  CHECK((h.tokens[2] == 5 && h.tokens[10] == 1000));
}

TEST_CASE("verify finds in other programs' files what opening them does not read") {
  const TempDir dir;
  const auto problems = [&](const std::string& path, const std::vector<std::string>& words) {
    const SourceReport report = verify_source(source_at(path));
    REQUIRE(report.problems.size() == 1);
    for (const std::string& word : words) {
      INFO(report.problems[0]);
      CHECK(report.problems[0].find(word) != std::string::npos);
    }
  };
  const Documents documents = numbered_documents(5000, 25);
  write_megatron<int32_t>(dir.file("m"), documents, 4);
  const SourceReport sound = verify_source(source_at(dir.file("m")));
  CHECK((sound.problems.empty() && sound.documents == 5000 && sound.tokens == std::ssize(concatenated(documents))));
  CHECK(sound.largest_id == 60002);
  FilePool pool;
  const int64_t S = open_source(source_at(dir.file("m")), pool).stores[0]->sequences();
  damage(dir.file("m.idx"), 34 + 4 * S + 8 * 4001 + 1);  // a pointer between the places that opening looks at
  CHECK_NOTHROW(open_source(source_at(dir.file("m")), pool));
  problems(dir.file("m"), {"sequence 4001", "m.idx"});
  write_megatron<int32_t>(dir.file("m"), documents, 4);
  damage(dir.file("m.bin"), 4 * 1234 + 3);  // a negative id
  problems(dir.file("m"), {"token 1234", "m.bin"});
  write_datatrove<uint16_t>(dir.file("x.ds"), documents);
  damage(dir.file("x.ds.index"), 8 * 2000 + 1);
  problems(dir.file("x.ds"), {"document 200", "x.ds.index"});
  truncate(dir.file("x.ds"), 100);
  problems(dir.file("x.ds"), {"x.ds", "100 bytes"});
}
