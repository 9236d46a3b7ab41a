#include "watch/record_tail.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::string line(int64_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"loss/avg\":2.5,\"padding\":\"" + std::string(200, '.') + "\"}\n";
}

class GrowingFile {
 public:
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  void replace(const std::string& text) const { std::ofstream(path(), std::ios::trunc) << text; }
  void remove() const { std::filesystem::remove(path()); }
  std::string path() const { return dir_.file("metrics.jsonl"); }

 private:
  TempDir dir_;
};

std::vector<int64_t> steps_of(const RecordTail::News& news) {
  std::vector<int64_t> steps;
  for (const MetricRecord& record : news.records) steps.push_back(record.step);
  return steps;
}

using Steps = std::vector<int64_t>;

}  // namespace

TEST_CASE("each poll takes what has come since, a last line only once it is whole") {
  const GrowingFile file;
  RecordTail tail(file.path());
  CHECK(tail.poll().trouble == "no metrics.jsonl yet");
  file.append(line(1) + line(2) + line(3).substr(0, 20));
  CHECK(steps_of(tail.poll()) == Steps{1, 2});
  CHECK(steps_of(tail.poll()).empty());
  file.append(line(3).substr(20));
  const RecordTail::News news = tail.poll();
  CHECK(steps_of(news) == Steps{3});
  CHECK_FALSE(news.is_new_file);
  CHECK_FALSE(news.has_more);
}

TEST_CASE("a line that a crash cut short is left out; what follows it is not") {
  const GrowingFile file;
  RecordTail tail(file.path());
  file.append(line(1) + "{\"step\":2,\"lo");
  CHECK(steps_of(tail.poll()) == Steps{1});
  file.append("\n" + line(3));
  CHECK(steps_of(tail.poll()) == Steps{3});
}

TEST_CASE(
    "a file that was cut, emptied or replaced is read anew from its first line, even where it is longer by then") {
  const GrowingFile file;
  RecordTail tail(file.path());
  file.append(line(1) + line(2) + line(3));
  tail.poll();
  SECTION("cut between two lines") {
    file.replace(line(1) + line(2));
    const RecordTail::News news = tail.poll();
    CHECK(news.is_new_file);
    CHECK(steps_of(news) == Steps{1, 2});
  }
  SECTION("emptied, and written again") {
    file.replace("");
    CHECK(tail.poll().is_new_file);
    file.append(line(7));
    const RecordTail::News news = tail.poll();
    CHECK_FALSE(news.is_new_file);
    CHECK(steps_of(news) == Steps{7});
  }
  SECTION("as long as it was, or longer") {
    file.replace(line(4) + line(5) + line(6) + line(7));
    const RecordTail::News news = tail.poll();
    CHECK(news.is_new_file);
    CHECK(steps_of(news) == Steps{4, 5, 6, 7});
  }
}

TEST_CASE("a file that is gone is said to be; when it is back as it was, with more, reading goes on") {
  const GrowingFile file;
  RecordTail tail(file.path());
  file.append(line(1));
  tail.poll();
  file.remove();
  CHECK(tail.poll().trouble == "metrics.jsonl is gone");
  file.append(line(1) + line(2));  // another inode, as of a copy that rsync has made
  const RecordTail::News news = tail.poll();
  CHECK_FALSE(news.is_new_file);
  CHECK(steps_of(news) == Steps{2});
}

TEST_CASE("a path that cannot be read is trouble, not an error") {
  const TempDir dir;
  RecordTail tail(dir.path());  // a directory
  CHECK_FALSE(tail.poll().trouble.empty());
}

TEST_CASE("a long file comes in parts, a few lines at a time, with no line lost or seen twice") {
  const GrowingFile file;
  RecordTail tail(file.path(), 1000);
  Steps expected;
  for (int64_t step = 1; step <= 50; ++step) {
    file.append(line(step));
    expected.push_back(step);
  }
  Steps seen;
  int polls = 0;
  for (bool has_more = true; has_more; ++polls) {
    const RecordTail::News news = tail.poll();
    CHECK(news.records.size() <= 4);
    for (const int64_t step : steps_of(news)) seen.push_back(step);
    has_more = news.has_more;
  }
  CHECK(polls > 10);
  CHECK(seen == expected);
}

TEST_CASE("a file of NULs without end is read no further than any record is long; another one in its place is") {
  const GrowingFile file;
  RecordTail tail(file.path());
  file.append(line(1));
  std::filesystem::resize_file(file.path(), uintmax_t{1} << 40);
  int polls = 0;
  RecordTail::News news = tail.poll();
  CHECK(steps_of(news) == Steps{1});
  for (; news.has_more && polls < 100; ++polls) news = tail.poll();
  CHECK(polls < 20);
  CHECK(news.trouble == "a line of more than 64.0 MiB in metrics.jsonl");
  file.replace(line(2));
  CHECK(steps_of(tail.poll()) == Steps{2});
}

TEST_CASE("a line longer than a poll reads is no record, and hides no other") {
  const GrowingFile file;
  RecordTail tail(file.path(), 1000);
  file.append(line(1) + std::string(5000, 'x') + "\n" + line(2));
  Steps seen;
  for (bool has_more = true; has_more;) {
    const RecordTail::News news = tail.poll();
    for (const int64_t step : steps_of(news)) seen.push_back(step);
    has_more = news.has_more;
  }
  CHECK(seen == Steps{1, 2});
}
