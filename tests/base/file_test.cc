#include "base/file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "base/hash.h"
#include "base/line_appender.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a text file is written completely and reads back the same") {
  const TempDir dir;
  write_text_atomically(dir.file("a.txt"), "one\ntwo", Kind::kData);
  CHECK(read_text(dir.file("a.txt"), Kind::kData) == "one\ntwo");
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.txt"});  // no .tmp left
}

TEST_CASE("processes that write one text file at once do not disturb each other, and one text stands, whole") {
  const TempDir dir;
  const std::string path = dir.file("a.txt");
  constexpr int kProcesses = 4, kTexts = 50;
  const auto text_of = [](int process) { return std::string(20000, static_cast<char>('a' + process)); };
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    try {
      for (int i = 0; i < kTexts; ++i) write_text_atomically(path, text_of(p), Kind::kData);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const std::string text = read_text(path, Kind::kData);
  CHECK((text.size() == 20000 && text == std::string(20000, text[0])));
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a text file that cannot take its name leaves nothing beside it") {
  const TempDir dir;
  make_directories(dir.file("taken/by a directory"), Kind::kData);
  CHECK_THROWS_AS(write_text_atomically(dir.file("taken"), "text", Kind::kData), Error);
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"taken"});
}

TEST_CASE("a failure names the path and the reason, and has its caller's kind") {
  const TempDir dir;
  try {
    InputFile missing(dir.file("none"), Kind::kCheckpoint);
    FAIL("opened a file that is not there");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kCheckpoint);
    CHECK(std::string(e.what()).find(dir.file("none")) != std::string::npos);
    CHECK(std::string(e.what()).find("No such file") != std::string::npos);
  }
}

TEST_CASE("a pipe where a file is due is refused at once, to readers and writers") {
  const TempDir dir;
  const std::string pipe = dir.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(pipe, Kind::kData), Contains("cannot open " + pipe) && Contains("a pipe"));
  CHECK_THROWS_WITH(read_text("/dev/zero", Kind::kData), Contains("a device"));
  CHECK_THROWS_WITH(OutputFile(pipe, Kind::kData), Contains("a pipe"));
  CHECK_THROWS_WITH(InputFile(dir.path(), Kind::kData), Contains("is a directory"));
}

TEST_CASE("a reader follows a link, a writer does not") {
  const TempDir dir;
  write_text_atomically(dir.file("a"), "text", Kind::kData);
  std::filesystem::create_symlink(dir.file("a"), dir.file("link"));
  CHECK(read_text(dir.file("link"), Kind::kData) == "text");
  CHECK_THROWS_WITH(OutputFile(dir.file("link"), Kind::kData), Contains("a symbolic link"));
  CHECK_THROWS_WITH(LineAppender(dir.file("link"), Kind::kData), Contains("a symbolic link"));
  CHECK(read_text(dir.file("a"), Kind::kData) == "text");
}

TEST_CASE("a text of more bytes than its reader takes is refused before it is read") {
  const TempDir dir;
  write_text_atomically(dir.file("a"), "12345", Kind::kData);
  CHECK(read_text(dir.file("a"), Kind::kData, 5) == "12345");
  CHECK_THROWS_WITH(read_text(dir.file("a"), Kind::kData, 4),
                    Contains(dir.file("a") + " has 5 B; such a file is never above 4 B"));
  REQUIRE(::truncate(dir.file("a").c_str(), int64_t{40} << 30) == 0);  // sparse
  CHECK_THROWS_WITH(read_text(dir.file("a"), Kind::kCheckpoint), Contains("40.0 GiB"));
}

TEST_CASE("the kind of an entry is that of the name, not of what a link leads to") {
  const TempDir dir;
  make_directories(dir.file("d"), Kind::kData);
  write_text_atomically(dir.file("f"), "", Kind::kData);
  std::filesystem::create_symlink(dir.file("d"), dir.file("link"));
  std::filesystem::create_symlink(dir.file("nowhere"), dir.file("dangling"));
  CHECK(std::filesystem::is_directory(entry_at(dir.file("d"))));
  CHECK(std::filesystem::is_regular_file(entry_at(dir.file("f"))));
  CHECK(std::filesystem::is_symlink(entry_at(dir.file("link"))));
  CHECK(std::filesystem::is_symlink(entry_at(dir.file("dangling"))));
  CHECK_FALSE(std::filesystem::exists(entry_at(dir.file("none"))));
}

TEST_CASE("reading past the end is an error, not a short read") {
  const TempDir dir;
  write_text_atomically(dir.file("a"), "12345", Kind::kData);
  const InputFile file(dir.file("a"), Kind::kData);
  std::vector<std::byte> buffer(3);
  CHECK_NOTHROW(file.read_at(2, buffer));
  CHECK_THROWS_AS(file.read_at(3, buffer), Error);
}

TEST_CASE("XXH3 checksums are those of the reference implementation") {
  CHECK(xxh3_64({}) == 0x2d06800538d394c2ull);
  CHECK(xxh3_128_hex({}) == "99aa06d3014798d86001c324468d497f");
  const std::string text = "tokamak";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  Hasher hasher;
  hasher.update(bytes.first(3));
  hasher.update(bytes.subspan(3));
  CHECK(hasher.hex128() == xxh3_128_hex(bytes));
  CHECK(hex64(0x0123456789abcdefull) == "0123456789abcdef");
}

TEST_CASE("a file's name is one component of a path, and short enough for an ending") {
  for (const std::string& name : {std::string("a"), std::string(".a"), std::string("a..b"), std::string(250, 'x')}) {
    CHECK(is_file_name(name));
  }
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("/"), std::string("a\0b", 3), std::string(251, 'x')}) {
    CHECK_FALSE(is_file_name(name));
  }
}

TEST_CASE("a read that finds the file too short is repeated, on the file that is there then") {
  const TempDir dir;
  const std::string path = dir.file("a.bin");
  write_text_atomically(path, "0123", Kind::kData);
  std::atomic<int64_t> repetitions = 0;
  const InputFile file(path, Kind::kData, {.most = 3, .count = &repetitions});
  std::string text(8, ' ');
  // Replaced, not appended to: only a new descriptor sees it.
  std::thread writer([&] {
    while (repetitions == 0) std::this_thread::yield();
    write_text_atomically(path, "01234567", Kind::kData);
  });
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  writer.join();
  CHECK(text == "01234567");
  CHECK(repetitions >= 1);

  const InputFile again(path, Kind::kData, {.most = 1, .count = nullptr});
  std::string longer(9, ' ');
  CHECK_THROWS_WITH(again.read_at(0, std::as_writable_bytes(std::span(longer))),
                    Contains(path) && Contains("ends at byte 8, 1 bytes too early, after 2 tries"));
  const InputFile once(path, Kind::kData);
  CHECK_THROWS_WITH(once.read_at(0, std::as_writable_bytes(std::span(longer))), !Contains("tries"));
  CHECK_THROWS_WITH(InputFile(dir.file("none"), Kind::kData, {.most = 5}),
                    Contains("No such file") && !Contains("tries"));
}
