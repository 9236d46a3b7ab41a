#include "base/staged.h"

#include <catch2/catch.hpp>

#include "base/file.h"
#include "support/captured_log.h"
#include "support/temp_dir.h"

using namespace tokamak;
using What = StagedOutput::What;
using Names = std::vector<std::string>;

namespace {

void write(const std::string& path, const std::string& text) {
  OutputFile file(path, Kind::kData);
  file.write(text);
  file.close();
}

Names names_in(const TempDir& dir) { return list_directory(dir.path(), Kind::kData); }

}  // namespace

TEST_CASE("an output appears when it is committed, and leaves nothing when it is not") {
  const TempDir dir;
  for (const bool commit : {false, true}) {
    {
      StagedOutput file(dir.file("file"), What::kFile, Kind::kData);
      StagedOutput directory(dir.file("directory/"), What::kDirectory, Kind::kData);
      write(file.staging(), "text");
      write(directory.staging() + "/x", "text");
      CHECK_FALSE(exists(dir.file("file")));
      CHECK_FALSE(exists(dir.file("directory")));
      if (commit) {
        file.commit();
        directory.commit();
      }
    }
    CHECK(names_in(dir) == (commit ? Names{"directory", "file"} : Names{}));
  }
}

TEST_CASE("an output is not written over, nor into a directory that is not there") {
  const TempDir dir;
  make_directories(dir.file("empty"), Kind::kData);
  make_directories(dir.file("full/x"), Kind::kData);
  write(dir.file("file"), "");
  StagedOutput(dir.file("empty"), What::kDirectory, Kind::kData).commit();
  const auto refused = [&](const std::string& name, What what, Existing existing, const std::string& words) {
    CHECK_THROWS_WITH(StagedOutput(dir.file(name), what, Kind::kData, existing), Catch::Contains(words));
  };
  refused("full", What::kDirectory, Existing::kRefuse, "full exists");
  refused("file", What::kFile, Existing::kRefuse, "file exists");
  refused("empty", What::kFile, Existing::kReplace, "empty exists");
  refused("file/", What::kDirectory, Existing::kReplace, "file exists");
  refused("gone/x", What::kFile, Existing::kReplace, "gone");
  StagedOutput late(dir.file("late"), What::kDirectory, Kind::kData);
  make_directories(dir.file("late/x"), Kind::kData);  // by another, meanwhile
  CHECK_THROWS_AS(late.commit(), Error);
  CHECK(exists(dir.file("late/x")));
}

TEST_CASE("what may be replaced is replaced as a whole, and kept where the new output fails") {
  const TempDir dir;
  make_directories(dir.file("directory/old"), Kind::kData);
  write(dir.file("file"), "old");
  for (const bool commit : {false, true}) {
    StagedOutput file(dir.file("file"), What::kFile, Kind::kData, Existing::kReplace);
    StagedOutput directory(dir.file("directory"), What::kDirectory, Kind::kData, Existing::kReplace);
    write(file.staging(), "new");
    write(directory.staging() + "/new", "");
    if (commit) {
      file.commit();
      directory.commit();
    }
    CHECK(read_text(dir.file("file"), Kind::kData) == (commit ? "new" : "old"));
    CHECK(list_directory(dir.file("directory"), Kind::kData) == Names{commit ? "new" : "old"});
  }
  CHECK(names_in(dir) == Names{"directory", "file"});
}

TEST_CASE("what an interrupted process has left is removed with a warning, and nothing else is") {
  const TempDir dir;
  make_directories(dir.file("out.tokamak-tmp-node7.1/part"), Kind::kData);
  make_directories(dir.file("other.tokamak-tmp-node7.1"), Kind::kData);
  write(dir.file("out.tmp"), "the user's");
  CapturedLog log;
  StagedOutput(dir.file("out"), What::kFile, Kind::kData).commit();
  CHECK_THAT(log.text(),
             Catch::Contains("removing " + dir.file("out.tokamak-tmp-node7.1, left by an interrupted run")));
  CHECK(names_in(dir) == Names{"other.tokamak-tmp-node7.1", "out", "out.tmp"});
}

TEST_CASE("two outputs of one name do not collide: the second is refused while the first is being written") {
  const TempDir dir;
  for (const What what : {What::kFile, What::kDirectory}) {
    StagedOutput first(dir.file("out"), what, Kind::kData);
    CHECK_THROWS_WITH(StagedOutput(dir.file("out"), what, Kind::kData),
                      Catch::Contains("another process is writing") && Catch::Contains(first.staging()));
    CHECK(exists(first.staging()));
    StagedOutput(dir.file("out2"), what, Kind::kData);
  }
}
