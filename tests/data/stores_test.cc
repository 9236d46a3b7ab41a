// Files of other programs are read as the tokens and documents that they hold, or refused with file, place and values.
#include <filesystem>
#include <fstream>
#include <set>

#include "data/dataset.h"
#include "data/stores/olmo.h"
#include "data/stores/source.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"

using namespace tokamak;

namespace {

constexpr int64_t kVocab = 65536;

Documents documents_of(const TokenStore& store) {
  Documents out(1);
  store.for_each_part([&](const DocumentPart& part) {
    std::vector<int32_t> ids(static_cast<size_t>(part.tokens));
    store.read(part.first, kVocab, ids);
    out.back().insert(out.back().end(), ids.begin(), ids.end());
    if (part.ends) out.emplace_back();
  });
  if (out.back().empty()) out.pop_back();
  return out;
}

Documents documents_of(const SourceOptions& source, SequenceOrder order = SequenceOrder::kContiguous) {
  FilePool pool;
  Documents out;
  for (const auto& store : open_source(source, pool, order).stores) {
    for (auto& document : documents_of(*store)) out.push_back(std::move(document));
  }
  return out;
}

// Every range of the source has these tokens, and the starts of these documents.
void check_ranges(const SourceOptions& source, const Documents& documents) {
  FilePool pool;
  const Dataset data = open_dataset(source, kVocab, pool);
  const std::vector<int32_t> tokens = concatenated(documents);
  std::set<int64_t> begins;
  int64_t position = 0;
  for (const auto& document : documents) {
    if (!document.empty()) begins.insert(position);
    position += std::ssize(document);
  }
  REQUIRE(data.tokens() == std::ssize(tokens));
  for (int64_t first = 0; first < data.tokens(); first += 97) {
    for (const int64_t length : {int64_t{1}, int64_t{3}, int64_t{200}, data.tokens()}) {
      const int64_t n = std::min(length, data.tokens() - first);
      std::vector<int32_t> ids(static_cast<size_t>(n)), starts, expected;
      data.read(first, ids);
      data.document_starts(first, n, starts);
      for (auto it = begins.lower_bound(first); it != begins.end() && *it < first + n; ++it) {
        expected.push_back(static_cast<int32_t>(*it - first));
      }
      REQUIRE(std::equal(ids.begin(), ids.end(), tokens.begin() + first));
      REQUIRE(starts == expected);
    }
  }
}

void refused(const SourceOptions& source, const std::vector<std::string>& words) {
  CAPTURE(words);
  check_fails(Kind::kData, words, [&] {
    FilePool pool;
    std::vector<int32_t> starts;
    const Dataset data = open_dataset(source, kVocab, pool);
    data.document_starts(0, data.tokens(), starts);
  });
}

}  // namespace

TEST_CASE("the golden bytes of each format are its tokens and documents") {
  const TempDir dir;
  write_file(dir.file("m.bin"), from_hex("0500 0600 0700 0800 0900 0a00 0b00 0c00"));
  write_file(dir.file("m.idx"), from_hex("4d4d494449445800 00 0100000000000000 08 0300000000000000 0400000000000000"
                                         "03000000 01000000 04000000"
                                         "0000000000000000 0600000000000000 0800000000000000"
                                         "0000000000000000 0100000000000000 0200000000000000 0300000000000000"));
  const Documents golden = {{5, 6, 7}, {8}, {9, 10, 11, 12}};
  for (const char* name : {"m", "m.bin", "m.idx"}) CHECK(documents_of(source_at(dir.file(name))) == golden);

  write_file(dir.file("x.ds"), from_hex("0500 0600 0700 0800 0900 0a00 0b00 0c00"));
  write_file(dir.file("x.ds.index"), from_hex("0300000000000000 0400000000000000 0800000000000000"));
  CHECK(documents_of(source_at(dir.file("x.ds"))) == golden);
  write_file(dir.file("x.ds.metadata"), "gpt2|2\n8\n8");
  CHECK(documents_of(source_at(dir.file("x.ds"))) == golden);

  std::string shard = from_hex("88d83401 01000000 05000000 00000000");
  shard.resize(1024, '\0');
  write_file(dir.file("l.bin"), shard + from_hex("50c4 0100 0200 0300 0400"));
  SourceOptions llmc = source_at(dir.file("l.bin"));
  llmc.delimiter_id = 50256;
  CHECK(documents_of(llmc) == Documents{{50256, 1, 2, 3, 4}});
  FilePool pool;
  CHECK((open_source(llmc, pool).format == SourceFormat::kLlmc));

  write_file(dir.file("o.npy"), from_hex("0500 0600 0700 0800"));
  SourceOptions olmo = source_at(dir.file("o.npy"));
  olmo.token_type = TokenElement::kUint16;
  olmo.delimiter_id = 6;
  CHECK(documents_of(olmo) == Documents{{5, 6}, {7, 8}});
}

TEST_CASE("all types of tokens, several sequences and empty documents come back in any range") {
  const TempDir dir;
  Documents documents = numbered_documents(500, 25);
  for (size_t d = 0; d < documents.size(); d += 7) documents[d].clear();
  Documents small = documents;  // ids that fit one byte
  for (auto& document : small) {
    for (int32_t& id : document) id %= 128;
  }
  write_megatron<uint8_t>(dir.file("1"), small, 1);
  write_megatron<int8_t>(dir.file("2"), small, 2);
  write_megatron<int16_t>(dir.file("3"), small, 3);
  write_megatron<int32_t>(dir.file("4"), documents, 4);
  write_megatron<int64_t>(dir.file("5"), documents, 5);
  write_megatron<uint16_t>(dir.file("8"), documents, 8);
  write_datatrove<uint16_t>(dir.file("a.ds"), documents);
  write_datatrove<uint32_t>(dir.file("b.ds"), documents);
  for (const char* name : {"1", "2", "3", "4", "5", "8", "a.ds", "b.ds"}) {
    CAPTURE(name);
    const Documents& expected = *name < '4' ? small : documents;
    CHECK(documents_of(source_at(dir.file(name))) == expected);
    check_ranges(source_at(dir.file(name)), expected);
  }
}

TEST_CASE("delimiters before or behind documents are found in the range that is read, across files") {
  const TempDir dir;
  const Documents documents = numbered_documents(300, 25);  // each ends in kEos
  Documents turned = documents;
  for (auto& document : turned) std::rotate(document.begin(), document.end() - 1, document.end());
  const std::vector<int32_t> tokens = concatenated(turned);
  const size_t cut = 1001;
  const std::vector<int32_t> one(tokens.begin(), tokens.begin() + cut), two(tokens.begin() + cut, tokens.end());
  REQUIRE(two[0] != kEos);
  write_file(dir.file("a_train_000000.bin"), llmc_header(20240801, 7, std::ssize(one)) + packed<uint32_t>(one));
  write_file(dir.file("a_train_000001.bin"), llmc_header(20240801, 7, std::ssize(two)) + packed<uint32_t>(two));
  SourceOptions source = source_at(dir.path());
  source.delimiter_id = kEos;
  check_ranges(source, turned);
  source.path = dir.file("a_train");
  check_ranges(source, turned);
  write_file(dir.file("a_val_000000.bin"), llmc_header(20240801, 7, std::ssize(two)) + packed<uint32_t>(two));
  check_ranges(source, turned);
  source.path = dir.path();
  refused(source, {dir.path(), "training and of validation"});

  write_file(dir.file("o.npy"), packed<uint16_t>(concatenated(documents)));
  write_file(dir.file("p.ds"), packed<uint16_t>(concatenated(documents)));
  for (const char* name : {"o.npy", "p.ds"}) {
    SourceOptions raw = source_at(dir.file(name));
    raw.token_type = TokenElement::kUint16;
    raw.delimiter_id = kEos;
    check_ranges(raw, documents);
  }
}

TEST_CASE("a NumPy file is read by its header, and refused for what holds no ids") {
  const auto numpy = [](const std::string& dictionary, size_t bytes) {
    std::string text("\x93NUMPY\x01\x00", 8);
    put_value(text, static_cast<uint16_t>(dictionary.size() + 1));
    return text + dictionary + "\n" + std::string(bytes, '\1');
  };
  const std::string good = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }";
  const TempDir dir;
  write_file(dir.file("x.npy"), numpy(good, 6));
  SourceOptions source = source_at(dir.file("x.npy"));
  source.delimiter_id = 7;
  CHECK(documents_of(source) == Documents{{257, 257, 257}});
  const auto bad = [&](const std::string& text, const std::vector<std::string>& words) {
    write_file(dir.file("x.npy"), text);
    refused(source, words);
  };
  bad(numpy(good, 5), {"x.npy", "3 tokens"});
  bad(numpy("{'descr': '<f4', 'shape': (3,), }", 12), {"x.npy", "<f4"});
  bad(numpy("{'descr': '>u2', 'shape': (3,), }", 6), {"x.npy", ">u2"});
  bad(numpy("{'descr': '<u2', 'shape': (3, 1), }", 6), {"x.npy", "(3, 1)"});
  bad(numpy("{'descr': '<u2', 'shape': (99999999999999999999,), }", 6), {"x.npy", "shape"});
  bad(numpy("", 0), {"x.npy"});
  bad(numpy(good, 6).substr(0, 20), {"x.npy", "header of"});
  bad(std::string("\x93NUMPY\x09\x00", 8) + good, {"x.npy", "version 9"});
  bad(std::string("abcdef"), {"x.npy", "raw"});
  source.token_type = TokenElement::kUint32;
  bad(std::string("abcdef"), {"x.npy", "6 bytes", "uint32"});
  bad(numpy(good, 6), {"x.npy", "uint16", "uint32"});
}

TEST_CASE("the documents of a raw file are those of its .csv.gz, which must fit") {
  const TempDir dir;
  const Documents documents = numbered_documents(700, 25);
  std::string rows;
  int64_t end = 0;
  for (const auto& document : documents) {
    rows += str(end, ",", end + std::ssize(document), ",id,/corpus/file.gz,7\n");
    end += std::ssize(document);
  }
  write_file(dir.file("x.npy"), packed<uint32_t>(concatenated(documents)));
  write_file(dir.file("x.csv.gz"), gzip_stored(rows));
  SourceOptions source = source_at(dir.file("x.npy"));
  source.token_type = TokenElement::kUint32;
  CHECK(documents_of(source) == documents);
  check_ranges(source, documents);
  const auto bad = [&](const std::string& bytes, const std::vector<std::string>& words) {
    write_file(dir.file("x.csv.gz"), bytes);
    refused(source, words);
  };
  bad(gzip_stored(rows.substr(0, rows.rfind('\n', rows.size() - 2) + 1)), {"x.csv.gz", "tokens", std::to_string(end)});
  bad(gzip_stored(rows + str(end, ",", end + 1, ",,,\n")), {"x.csv.gz", "END", std::to_string(end)});
  bad(gzip_stored(rows).substr(0, 5000), {"x.csv.gz"});
  bad(gzip_stored("0,0,,,\n" + std::string(1000, 'x') + "\n"), {"line 2", "x.csv.gz", "xxx"});
  std::string endless;
  for (int64_t i = 0; i < end + 5; ++i) endless += "0,0\n";
  bad(gzip_stored(endless.substr(0, 60000)), {"x.csv.gz", "0"});
}

TEST_CASE("a row of documents is refused unless it follows the one before it") {
  std::vector<int64_t> starts;
  int64_t end = 0;
  parse_document_row("0,5,id,src,1", 9, "row 1", end, starts);
  parse_document_row("5,9", 9, "row 2", end, starts);
  CHECK(starts == std::vector<int64_t>{0, 5});
  for (const char* row : {"", "9", "9,", "8,9,x", "9,10,x", "9,8", "9,9x", " 9,9", "9223372036854775808,9"}) {
    CAPTURE(row);
    check_fails(Kind::kData, {"row 3", "START 9"}, [&] { parse_document_row(row, 9, "row 3", end, starts); });
  }
}

TEST_CASE("a Megatron index whose parts do not fit is refused with file, place and values") {
  const TempDir dir;
  const SourceOptions source = source_at(dir.file("m"));
  const auto bad = [&](const std::string& index, const std::vector<std::string>& words) {
    write_file(dir.file("m.idx"), index);
    refused(source, words);
  };
  write_file(dir.file("m.bin"), std::string(16, '\1'));
  const std::vector<int32_t> lengths = {3, 1, 4};
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 1, 2, 3}).substr(0, 80), {"m.idx", "80 bytes"});
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 1, 2, 3}) + "\1\1\1", {"m.idx", "multimodal"});
  bad(megatron_index(7, lengths, {0, 6, 8}, {0, 1, 2, 3}), {"m.idx", "code 7", "floating"});
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 1, 2, 4}), {"m.idx", "end with 4", "3"});
  bad(megatron_index(8, lengths, {0, 6, 8}, {1, 1, 2, 3}), {"m.idx", "begin with 1"});
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 2, 1, 3}), {"m.idx", "document 2", "sequence 1"});
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 9, 2, 3}), {"m.idx", "document 1", "sequence 9"});
  bad(megatron_index(8, {3, 1, 5}, {0, 6, 8}, {0, 1, 2, 3}), {"sequence 2", "m.idx", "5 tokens", "16 bytes"});
  bad(megatron_index(8, {3, 1, -4}, {0, 6, 8}, {0, 1, 2, 3}), {"sequence 2", "m.idx", "-4 tokens"});
  bad(megatron_index(8, {3, -1, 4}, {0, 6, 8}, {0, 1, 2, 3}), {"sequence 1", "m.idx", "-1 tokens"});
  bad(megatron_index(8, lengths, {0, 6, INT64_MAX}, {0, 1, 2, 3}), {"sequence 2", "m.idx", "9223372036854775807"});
  bad(megatron_index(8, lengths, {0, 7, 8}, {0, 1, 2, 3}), {"sequence 1", "byte 7", "end at byte 6"});
  bad(megatron_index(8, lengths, {2, 6, 8}, {0, 1, 2, 3}), {"sequence 0", "byte 2"});
  bad(megatron_index(8, lengths, {0, 6, -8}, {0, 1, 2, 3}), {"sequence 2", "-8", "overflowed"});
  bad(std::string("TNTIDX\0\0", 8) + std::string(60, '\0'), {"m.idx", "fairseq"});
  remove_file(dir.file("m.bin"), Kind::kData);
  bad(megatron_index(8, lengths, {0, 6, 8}, {0, 1, 2, 3}), {"m.bin", "No such file"});

  write_file(dir.file("n.bin"), std::string(16, '\1'));
  write_file(dir.file("m.bin"), std::string(16, '\1'));
  refused(source_at(dir.path()), {"n.bin", "no index"});
}

TEST_CASE("ids outside 31 bits are refused by token and value") {
  const TempDir dir;
  write_megatron<int64_t>(dir.file("m"), {{5, 6, 7}}, 5);
  std::string bytes = read_text(dir.file("m.bin"), Kind::kData);
  const int64_t large = int64_t{1} << 40;
  bytes.replace(8, 8, std::string(reinterpret_cast<const char*>(&large), 8));
  write_file(dir.file("m.bin"), bytes);
  check_fails(Kind::kData, {"token 1", "m.bin", "1099511627776"}, [&] { documents_of(source_at(dir.file("m"))); });
  write_megatron<int8_t>(dir.file("m"), {{5, 6, -7}}, 2);
  check_fails(Kind::kData, {"token 2", "m.bin", "-7"}, [&] { documents_of(source_at(dir.file("m"))); });
}

TEST_CASE("overflowed pointers and reordered sequences are streamed, not trained on") {
  const TempDir dir;
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6};
  write_file(dir.file("m.bin"), packed<uint16_t>(tokens));
  write_file(dir.file("m.idx"), megatron_index(8, {2, 1, 3}, {8, 4, 0}, {0, 2, 3}));
  refused(source_at(dir.file("m")), {"sequence 0", "byte 8"});
  CHECK(documents_of(source_at(dir.file("m")), SequenceOrder::kAny) == Documents{{5, 6, 3}, {1, 2, 3}});

  // 4 GiB and 2 tokens, mostly holes. The pointer of the last sequence wrapped around to 4.
  const int64_t half = int64_t{1} << 29;
  write_file(dir.file("w.bin"), "");
  std::filesystem::resize_file(dir.file("w.bin"), static_cast<uintmax_t>(8 * half + 8));
  {
    std::fstream file(dir.file("w.bin"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8 * half + 4);
    file.put('\7');
  }
  const auto length = static_cast<int32_t>(half);
  write_file(dir.file("w.idx"),
             megatron_index(4, {length, length + 1, 1}, {0, 4 * half - (int64_t{1} << 32), 4}, {0, 1, 2, 3}));
  refused(source_at(dir.file("w")), {"w.idx"});
  FilePool pool;
  const OpenSource open = open_source(source_at(dir.file("w")), pool, SequenceOrder::kAny);
  std::vector<int64_t> firsts;
  std::vector<int32_t> last(1);
  open.stores[0]->for_each_part([&](const DocumentPart& part) { firsts.push_back(part.first); });
  CHECK(firsts == std::vector<int64_t>{0, half, 2 * half + 1});
  open.stores[0]->read(firsts[2], kVocab, last);
  CHECK(last[0] == 7);
}

TEST_CASE("datatrove's files are refused where they contradict each other") {
  const TempDir dir;
  const SourceOptions source = source_at(dir.file("x.ds"));
  const Documents documents = {{5, 6, 7}, {8}, {9, 10, 11, 12}};
  const auto index = [](const std::vector<uint64_t>& ends) {
    std::string out;
    for (const uint64_t end : ends) put_value(out, end);
    return out;
  };
  const auto bad = [&](const std::string& suffix, const std::string& bytes, const std::vector<std::string>& words) {
    write_datatrove<uint16_t>(dir.file("x.ds"), documents);
    write_file(dir.file("x.ds.metadata"), "gpt2|2\n8\n8");
    write_file(dir.file("x.ds" + suffix), bytes);
    refused(source, words);
  };
  bad(".index", index({3, 4, 9}), {"x.ds", "token 9"});
  bad(".index", index({5, 4, 8}), {"document 1", "x.ds.index", "token 4", "5 to 8"});
  bad(".index", index({3, ~uint64_t{0}, 8}), {"document 1", "x.ds.index", "18446744073709551615"});
  bad(".index", index({3, 4, 8}).substr(1), {"x.ds.index", "23 bytes"});
  bad(".metadata", "gpt2|4\n8\n8", {"x.ds", "16 bytes", "8 tokens of 4"});
  bad(".metadata", "gpt2|2\n9\n9", {"x.ds", "9 tokens"});
  for (const char* text : {"", "gpt2", "gpt2|3\n8", "gpt2|2", "gpt2|2\n-8", "gpt2|2\nmany", "\n\n"}) {
    bad(".metadata", text, {"x.ds.metadata", "TOKENIZER|2"});
  }
  bad("", std::string(15, '\1'), {"x.ds", "15 bytes"});
  bad(".loss", std::string(8, '\1'), {"x.ds.loss", "loss mask"});
}

TEST_CASE("llm.c's files are refused by magic, version, size and kind") {
  const TempDir dir;
  SourceOptions source = source_at(dir.file("x.bin"));
  source.delimiter_id = 2;
  const auto bad = [&](const std::string& bytes, const std::vector<std::string>& words) {
    write_file(dir.file("x.bin"), bytes);
    refused(source, words);
  };
  const std::string tokens = packed<uint16_t>({2, 5, 6});
  bad(llmc_header(20240520, 2, 3) + tokens, {"x.bin", "version 2"});
  bad(llmc_header(20240520, 1, 4) + tokens, {"x.bin", "1030 bytes", "4 tokens"});
  bad(llmc_header(20240520, 1, -3) + tokens, {"x.bin", "-3 tokens"});
  bad(llmc_header(20240801, 7, 3) + tokens, {"x.bin", "3 tokens of 4"});
  bad(llmc_header(20240520, 1, 3).substr(0, 1000), {"x.bin", "1000 of 1024"});
  bad(llmc_header(20240522, 1, 3) + tokens, {"x.bin", "evaluation"});
  bad(llmc_header(7, 1, 3) + tokens, {"x.bin", "known format"});
  write_file(dir.file("x.bin"), llmc_header(20240520, 1, 3) + tokens);
  CHECK(documents_of(source) == Documents{{2, 5, 6}});
  source.delimiter_id = -1;
  refused(source, {"x.bin", "no index of documents"});
  source.format = SourceFormat::kMegatron;
  refused(source, {"x.bin", "format megatron"});
}
