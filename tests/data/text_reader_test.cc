// Which documents text files hold, and what is said of files that hold none.
#include "data/text/text_reader.h"

#include <zlib.h>
#include <zstd.h>

#include <filesystem>

#include "data/text/text_files.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

void put(const std::string& path, const std::string& text) { write_text_atomically(path, text, Kind::kData); }

std::vector<std::string> documents_of(const std::vector<std::string>& inputs, int64_t max_bytes = 0) {
  const std::vector<TextFile> files = find_text_files(inputs);
  TextReader reader(files, max_bytes);
  std::vector<std::string> out;
  Document document;
  while (reader.next(document)) {
    parse_text(document, "text");
    out.push_back(document.text);
  }
  return out;
}

std::vector<std::string> documents_of_text(const std::string& text, int64_t max_bytes = 0) {
  const TempDir dir;
  put(dir.file("a.txt"), text);
  return documents_of({dir.file("a.txt")}, max_bytes);
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("a text file is one document, and form feeds make several") {
  CHECK(documents_of_text("one\n\ntwo\n") == Strings{"one\n\ntwo\n"});
  CHECK(documents_of_text("one\n\ftwo\f\f \n \fthree") == Strings{"one\n", "two", "three"});
  CHECK(documents_of_text("one\f") == Strings{"one"});
  CHECK(documents_of_text("\xEF\xBB\xBFone") == Strings{"one"});
  CHECK(documents_of_text("").empty());
  CHECK(documents_of_text("\n \f\n").empty());
}

TEST_CASE("a long document is cut after a blank line, else after a line, else between characters") {
  CHECK(documents_of_text("aaa\n\nbb\nb\n\ncccc", 9) == Strings{"aaa\n\n", "bb\nb\n\n", "cccc"});
  CHECK(documents_of_text("aaa\r\n\r\nbb\r\nccc", 10) == Strings{"aaa\n\n", "bb\nccc"});
  CHECK(documents_of_text("aaa\nbbb\nccc", 9) == Strings{"aaa\nbbb\n", "ccc"});
  CHECK(documents_of_text("aaaabbbbcc", 4) == Strings{"aaaa", "bbbb", "cc"});
  CHECK(documents_of_text("\xC3\xA9\xC3\xA9\xC3\xA9", 3) == Strings{"\xC3\xA9", "\xC3\xA9", "\xC3\xA9"});
  CHECK(documents_of_text("\xE2\x82\xAC\xE2\x82\xAC", 5) == Strings{"\xE2\x82\xAC", "\xE2\x82\xAC"});
  CHECK(documents_of_text("\xE2\x82\xAC\xE2\x82\xAC", 6) == Strings{"\xE2\x82\xAC\xE2\x82\xAC"});
  CHECK(documents_of_text("\xF0\x9F\x98\x80z", 4) == Strings{"\xF0\x9F\x98\x80", "z"});
  CHECK(documents_of_text("\x80\x80\x80\x80\x80", 2) == Strings{"\x80\x80", "\x80\x80", "\x80"});  // not UTF-8
  CHECK(documents_of_text("aaaa", 4) == Strings{"aaaa"});
  CHECK(documents_of_text("aaaa\fbbbbbb", 4) == Strings{"aaaa", "bbbb", "bb"});
}

TEST_CASE("line ends of CR LF are read as LF, and bytes that are no text are counted") {
  const TempDir dir;
  put(dir.file("a.txt"), std::string("a\r\nb\rc\r\n\xFF\xC3", 10) + std::string(3, '\0'));
  put(dir.file("b.jsonl"), R"({"text": "a\r\nb\u0000"})");
  const std::vector<TextFile> files = find_text_files({dir.file("a.txt"), dir.file("b.jsonl")});
  TextReader reader(files, 0);
  Document plain, json;
  REQUIRE((reader.next(plain) && reader.next(json)));
  parse_text(plain, "text");
  parse_text(json, "text");
  CHECK(plain.text == std::string("a\nb\rc\n\xFF\xC3", 8) + std::string(3, '\0'));
  CHECK((plain.faults.crlf_line_ends == 2 && plain.faults.invalid_bytes == 2 && plain.faults.nul_bytes == 3));
  CHECK(json.text == std::string("a\r\nb\0", 5));  // as the file states it
  CHECK((json.faults.crlf_line_ends == 0 && json.faults.invalid_bytes == 0 && json.faults.nul_bytes == 1));
}

TEST_CASE("text larger than one read is complete, for any bytes at the boundary") {
  const int64_t seam = int64_t{1} << 20;
  for (const int64_t at : {seam - 1, seam, seam + 1}) {
    const std::string first(static_cast<size_t>(at), 'a');
    const std::string second(static_cast<size_t>(2 * seam + 5), 'b');
    CHECK(documents_of_text(first + "\f" + second + "\f" + "c") == Strings{first, second, "c"});
  }
  std::string many;
  for (int i = 0; i < 400'000; ++i) many += std::to_string(i) + "\f";
  CHECK(documents_of_text(many).size() == 400'000);
  std::string lines;
  for (int i = 0; i < 400'000; ++i) lines += std::to_string(i) + "\n";
  std::string joined;
  for (const std::string& piece : documents_of_text(lines, 1000)) {
    REQUIRE(piece.size() <= 1000);
    REQUIRE(piece.back() == '\n');
    joined += piece;
  }
  CHECK(joined == lines);
}

TEST_CASE("each line of a JSON lines file is a document") {
  const TempDir dir;
  put(dir.file("a.jsonl"),
      "\xEF\xBB\xBF{\"text\": \"one\\n\\u00e9\", \"id\": 1}\n\n  \n{\"id\": 2, \"text\": \"two\"}\r\n{\"text\":\"\"}");
  CHECK(documents_of({dir.file("a.jsonl")}) == Strings{"one\n\xC3\xA9", "two", ""});
}

TEST_CASE("a bad line is named by file and line") {
  const std::string good = "{\"text\": \"one\"}\n\n";
  const auto refused = [&](const std::string& line, const Strings& words) {
    const TempDir dir;
    put(dir.file("a.jsonl"), good + line + "\n" + good);
    Strings all = words;
    all.push_back(dir.file("a.jsonl") + ":3");
    check_fails(Kind::kData, all, [&] { documents_of({dir.file("a.jsonl")}); });
  };
  refused("{\"text\": \"one\"", {"not valid JSON"});
  refused("{\"text\": \"one\"} x", {"not valid JSON"});
  refused("{\"text\": \"\x80\"}", {"not valid JSON"});
  refused("[\"text\"]", {"not a JSON object", "array"});
  refused("{\"txt\": \"one\", \"id\": 3}", {"'text' is missing", "id, txt"});
  refused("{\"text\": null}", {"'text' is null; expected a string"});
}

TEST_CASE("compressed files hold the documents of the plain ones") {
  const TempDir dir;
  std::string lines;
  for (int i = 0; i < 30'000; ++i) lines += str("{\"id\": ", i, ", \"text\": \"document ", i, "\"}\n");
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += str("document ", i, "\f");
  for (const auto& [name, bytes] : {std::pair{"a.jsonl", lines}, std::pair{"a.txt", text}}) {
    put(dir.file(name), bytes);
    const std::string zipped = dir.file(std::string("gz/") + name + ".gz"),
                      zstd = dir.file(std::string("zst/") + name + ".zst");
    make_directories(parent_directory(zipped), Kind::kData);
    make_directories(parent_directory(zstd), Kind::kData);
    const gzFile file = gzopen(zipped.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    std::string frame(ZSTD_compressBound(bytes.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 3));
    put(zstd, frame);
  }
  const Strings plain = documents_of({dir.file("a.jsonl"), dir.file("a.txt")});
  CHECK(plain.size() == 60'000);
  CHECK(documents_of({dir.file("gz")}) == plain);
  CHECK(documents_of({dir.file("zst")}) == plain);
  CHECK(documents_of({dir.file("zst/a.jsonl.zst")}).size() == 30'000);
  std::filesystem::resize_file(dir.file("gz/a.jsonl.gz"), 5000);
  check_fails(Kind::kData, {dir.file("gz/a.jsonl.gz"), "byte 5000", "within a member"},
              [&] { documents_of({dir.file("gz")}); });
}

TEST_CASE("directories are read by name, below too, and other files left out") {
  const TempDir dir;
  make_directories(dir.file("b/c"), Kind::kData);
  put(dir.file("z.txt"), "z");
  put(dir.file("b/y.jsonl"), "{\"text\": \"y\"}");
  put(dir.file("b/c/x.txt"), "x");
  put(dir.file("b/README.md"), "no");
  put(dir.file("a.txt"), "a");
  CHECK(documents_of({dir.path()}) == Strings{"a", "x", "y", "z"});
  CHECK(documents_of({dir.file("z.txt"), dir.file("b")}) == Strings{"z", "x", "y"});
}

TEST_CASE("a directory is read once, however many links lead to it") {
  const TempDir dir;
  make_directories(dir.file("b"), Kind::kData);
  put(dir.file("b/x.txt"), "x");
  for (const char* link : {"b/l", "b/m"}) std::filesystem::create_directory_symlink(dir.file("b"), dir.file(link));
  std::filesystem::create_directory_symlink(dir.path(), dir.file("b/up"));  // two in a circle: 2^40 paths
  CHECK(documents_of({dir.path()}) == Strings{"x"});
  check_fails(Kind::kData, {"twice"}, [&] { find_text_files({dir.file("b"), dir.path()}); });
}

TEST_CASE("inputs that cannot be meant are refused") {
  const TempDir dir;
  make_directories(dir.file("empty"), Kind::kData);
  put(dir.file("a.txt"), "a");
  put(dir.file("a.md"), "a");
  const auto refused = [&](const Strings& inputs, const Strings& words) {
    check_fails(Kind::kData, words, [&] { find_text_files(inputs); });
  };
  refused({dir.file("none")}, {dir.file("none"), "does not exist"});
  refused({dir.file("a.md")}, {dir.file("a.md"), ".txt and .jsonl"});
  refused({dir.file("empty")}, {"no .txt or .jsonl"});
  refused({dir.file("a.txt"), dir.path()}, {"twice", dir.file("a.txt")});
  put(dir.file("b.jsonl.xz"), "x");
  refused({dir.path()}, {dir.file("b.jsonl.xz"), "compressed", ".zst"});
}
