// A shard's bytes are Megatron's, and damage of every kind is found and named.
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "data/index_format.h"
#include "data/shard_reader.h"
#include "data/shard_writer.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

std::string hex(const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

ShardInfo write_shard(const std::string& directory, const Documents& documents, TokenType type) {
  ShardWriter writer(directory, "part-00000", type);
  for (const auto& document : documents) writer.append(document);
  return writer.finish();
}

std::span<const std::byte> as_bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("a shard's bytes are those of Megatron's writer") {
  const TempDir dir;
  const ShardInfo info = write_shard(dir.path(), {{5, 6, 7}, {8}, {9, 10, 11, 12}}, TokenType::kUint16);
  CHECK(hex(read_text(dir.file("part-00000.bin"), Kind::kData)) == "050006000700080009000a000b000c00");
  CHECK(hex(read_text(dir.file("part-00000.idx"), Kind::kData)) ==
        "4d4d49444944580000"
        "0100000000000000"
        "08"
        "0300000000000000"
        "0400000000000000"
        "030000000100000004000000"
        "000000000000000006000000000000000800000000000000"
        "0000000000000000010000000000000002000000000000000300000000000000");
  CHECK(info.tokens == 8);
  CHECK(info.documents == 3);
  CHECK(info.bytes == 16);
  CHECK(info.index_bytes == 102);
  CHECK(info.max_token_id == 12);
  CHECK(list_directory(dir.path(), Kind::kData) ==
        std::vector<std::string>{"part-00000.bin", "part-00000.idx", "part-00000.sum"});
}

TEST_CASE("the token type follows the vocabulary as in Megatron") {
  CHECK(token_type_for(65499) == TokenType::kUint16);
  CHECK(token_type_for(65500) == TokenType::kInt32);
}

TEST_CASE("tokens and document starts come back from any range, in both token types") {
  for (const TokenType type : {TokenType::kUint16, TokenType::kInt32}) {
    const TempDir dir;
    Documents documents = numbered_documents(1500, 9);
    for (size_t d = 0; d < documents.size(); d += 11) documents[d].clear();  // empty documents are legal
    const ShardInfo info = write_shard(dir.path(), documents, type);
    const std::vector<int32_t> tokens = concatenated(documents);
    std::vector<bool> begins(tokens.size() + 1, false);
    size_t position = 0;
    for (const auto& document : documents) {
      begins[position] = true;
      position += document.size();
    }

    FilePool pool;
    const Shard shard(dir.path(), info, type, pool);
    shard.check_index();
    for (int64_t first = 0; first < info.tokens; first += 37) {
      for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{64}, info.tokens}) {
        const int64_t n = std::min(count, info.tokens - first);
        std::vector<int32_t> read(static_cast<size_t>(n));
        shard.read(first, 65536, read);
        REQUIRE(std::equal(read.begin(), read.end(), tokens.begin() + first));
        std::vector<int32_t> starts;
        shard.document_starts(first, n, 5, starts);
        std::vector<int32_t> expected;
        for (int64_t p = first; p < first + n; ++p) {
          if (begins[static_cast<size_t>(p)]) expected.push_back(static_cast<int32_t>(5 + p - first));
        }
        REQUIRE(starts == expected);
      }
    }
  }
}

TEST_CASE("large ids need the wide type, and survive in it") {
  const TempDir dir;
  const ShardInfo info = write_shard(dir.path(), {{70000, 2147483647}}, TokenType::kInt32);
  CHECK(info.max_token_id == 2147483647);
  ShardWriter narrow(dir.path(), "part-00001", TokenType::kUint16);
  CHECK_THROWS_AS(narrow.append(std::vector<int32_t>{65536}), Error);
}

TEST_CASE("an id beyond the vocabulary is found while reading, with file and place") {
  const TempDir dir;
  FilePool pool;
  const ShardInfo info = write_shard(dir.path(), {{5, 6, 900, 7}}, TokenType::kUint16);
  const Shard shard(dir.path(), info, TokenType::kUint16, pool);
  std::vector<int32_t> out(2);
  CHECK_NOTHROW(shard.read(0, 900, out));
  check_fails(Kind::kData, {"token 2", "part-00000.bin", "900"}, [&] { shard.read(1, 900, out); });
}

TEST_CASE("a damaged block is named when it is first touched, and no other block suffers") {
  const TempDir dir;
  FilePool pool;
  Documents documents;
  for (int i = 0; i < 5000; ++i) documents.emplace_back(1000, i % 60000);  // 10 MB: three blocks
  const ShardInfo info = write_shard(dir.path(), documents, TokenType::kUint16);
  damage(dir.file("part-00000.bin"), kBinBlockBytes + 17);
  const Shard shard(dir.path(), info, TokenType::kUint16, pool);
  std::vector<int32_t> out(10);
  CHECK_NOTHROW(shard.read(0, 65536, out));
  CHECK_NOTHROW(shard.read(kBinBlockBytes, 65536, out));  // token at byte 2 x block: the third block
  const std::vector<std::string> words = {"block 1", "part-00000.bin", "4194304", "damaged"};
  check_fails(Kind::kData, words, [&] { shard.read(kBinBlockBytes - 10, 65536, out); });
  check_fails(Kind::kData, words, [&] { shard.read(kBinBlockBytes / 2 - 5, 65536, out); });  // its first half is sound
  check_fails(Kind::kData, words, [&] { shard.read(kBinBlockBytes - 10, 65536, out); });     // and it stays damaged
}

TEST_CASE("a damaged index or checksum file is named") {
  const TempDir dir;
  FilePool pool;
  const ShardInfo info = write_shard(dir.path(), numbered_documents(300, 9), TokenType::kUint16);
  std::vector<int32_t> starts;
  damage(dir.file("part-00000.idx"), 34 + 4 * 300 + 8 * 150);
  check_fails(Kind::kData, {"block 0", "part-00000.idx"},
              [&] { Shard(dir.path(), info, TokenType::kUint16, pool).document_starts(0, 100, 0, starts); });
  damage(dir.file("part-00000.sum"), 30);
  check_fails(Kind::kData, {"part-00000.sum", "own checksum"},
              [&] { Shard(dir.path(), info, TokenType::kUint16, pool).document_starts(0, 100, 0, starts); });
}

TEST_CASE("a file of another length than recorded is found when the shard is opened") {
  for (const std::string suffix : {".bin", ".idx", ".sum"}) {
    const TempDir dir;
    FilePool pool;
    const ShardInfo info = write_shard(dir.path(), numbered_documents(30, 9), TokenType::kUint16);
    const std::string path = dir.file("part-00000" + suffix);
    if (suffix != ".sum") {
      truncate(path, 50);
      check_fails(Kind::kData, {path, "50 bytes"}, [&] { Shard(dir.path(), info, TokenType::kUint16, pool); });
    }
    remove_file(path, Kind::kData);
    check_fails(Kind::kData, {path, "No such file"}, [&] { Shard(dir.path(), info, TokenType::kUint16, pool); });
  }
}

TEST_CASE("an index header is refused for each thing that can be wrong with it") {
  const IndexHeader header{TokenElement::kUint16, 3, 4};
  const auto encoded = encode_index_header(header);
  const std::string good(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  CHECK(parse_index_header(as_bytes_of(good), 102, "x.idx").sequences == 3);
  CHECK(parse_index_header(as_bytes_of(good), 105, "x.idx").document_entries == 4);  // with mode bytes
  const auto refused = [](std::string bytes, int64_t file_bytes, const std::string& word) {
    check_fails(Kind::kData, {"x.idx", word}, [&] { parse_index_header(as_bytes_of(bytes), file_bytes, "x.idx"); });
  };
  const auto with = [&](size_t at, char value) {
    std::string changed = good;
    changed[at] = value;
    return changed;
  };
  refused(good, 101, "101 bytes");
  refused(good, 103, "103 bytes");
  refused(good.substr(0, 20), 20, "inside its header");
  refused("", 0, "MMIDIDX");
  refused(with(0, 'X'), 102, "MMIDIDX");
  refused(with(9, 2), 102, "version 2");
  refused(with(17, 6), 102, "type code 6");
  refused(with(25, 0x7f), 102, "claims");
  refused(std::string("TNTIDX\0\0", 8) + good, 102, "fairseq");
}

TEST_CASE("an index that does not tile its tokens is refused, even with a valid checksum") {
  // Rewrites the index with one field changed and matching checksums, as a faulty writer would.
  const auto check_with = [](size_t offset, int64_t value, size_t width, const std::vector<std::string>& words) {
    const TempDir dir;
    FilePool pool;
    ShardInfo info = write_shard(dir.path(), {{5, 6, 7}, {8}, {9, 10, 11, 12}}, TokenType::kUint16);
    std::string idx = read_text(dir.file("part-00000.idx"), Kind::kData);
    std::memcpy(idx.data() + offset, &value, width);
    write_text_atomically(dir.file("part-00000.idx"), idx, Kind::kData);
    ShardSums sums = read_sums(InputFile(dir.file("part-00000.sum"), Kind::kData), info.bytes, info.index_bytes);
    sums.idx.sums[0] = xxh3_64(as_bytes_of(idx));
    write_sums(dir.file("part-00000.sum"), sums);
    check_fails(Kind::kData, words, [&] { Shard(dir.path(), info, TokenType::kUint16, pool).check_index(); });
  };
  check_with(34 + 4, -1, 4, {"part-00000.idx", "sequence 1", "length -1"});
  check_with(34 + 4, 2, 4, {"sequence 2", "byte 8", "byte 10"});  // lengths disagree with pointers
  check_with(34 + 8, 3, 4, {"end at byte 14", "16 bytes"});       // tokens that no document owns
  check_with(34 + 8, 5, 4, {"sequence 2", "ends at byte 18", "of 16"});
  check_with(34 + 12 + 8, 4, 8, {"sequence 1", "byte 4", "byte 6"});  // overlap
  check_with(34 + 36 + 8, 2, 8, {"document 1", "sequence 2"});        // two sequences in a document
}

TEST_CASE("open files stay within the limit, and one in use is not closed") {
  const TempDir dir;
  for (int i = 0; i < 9; ++i) write_text_atomically(dir.file(std::to_string(i)), std::to_string(i), Kind::kData);
  FilePool pool(3);
  const auto content = [](const FilePool::Lease& lease) {
    std::string text(1, ' ');
    lease.file().read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  };
  const auto open_files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_files();
  const FilePool::Lease held = pool.open(dir.file("0"));
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < 9; ++i) {
      CHECK(content(pool.open(dir.file(std::to_string(i)))) == std::to_string(i));
      CHECK(open_files() <= before + 3);
    }
  }
  for (int i = 0; i < 9; ++i) remove_file(dir.file(std::to_string(i)), Kind::kData);
  CHECK(content(held) == "0");
  CHECK(content(pool.open(dir.file("8"))) == "8");   // still open
  CHECK_THROWS_AS(pool.open(dir.file("1")), Error);  // was closed
}
