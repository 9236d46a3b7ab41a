#include "monitor/file_thread.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "monitor/file_size_limit.h"
#include "monitor/jsonl.h"
#include "support/captured_log.h"

using namespace tokamak;

namespace {

constexpr double kEver = 600;  // seconds

int64_t times(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Records the input of a sink, and simulates a disk that blocks or refuses it.
struct Disk {
  std::mutex slow;  // who holds it, holds up every write
  std::vector<int64_t> steps;
  bool refuses = false;
};

class DiskSink : public FileSink {
 public:
  DiskSink(Disk& disk, std::string name) : disk_(disk), name_(std::move(name)) {}
  bool takes(const MetricRecord& record) const override { return !record.is("ignored"); }
  void write(const MetricRecord& record) override {
    const std::lock_guard lock(disk_.slow);
    if (disk_.refuses) throw std::runtime_error("cannot write " + name_);
    disk_.steps.push_back(record.step);
  }
  const std::string& path() const override { return name_; }

 private:
  Disk& disk_;
  std::string name_;
};

FileSinks on(std::vector<Disk*> disks) {
  FileSinks files;
  for (Disk* disk : disks) files.push_back(std::make_unique<DiskSink>(*disk, str("disk", files.size())));
  return files;
}

FileSinks jsonl(const std::string& path) {
  FileSinks files;
  files.push_back(std::make_unique<JsonlFile>(path));
  return files;
}

}  // namespace

TEST_CASE("whoever writes waits for no disk; what waits is written in order, by a flush and at the end") {
  Disk disk;
  {
    FileThread files(on({&disk}));
    {
      const std::lock_guard held_up(disk.slow);
      for (const int64_t step : {1, 2, 3}) files.write({.step = step});
      CHECK(!files.flush(0.01));
    }
    CHECK(files.flush(kEver));
    CHECK(disk.steps == std::vector<int64_t>{1, 2, 3});
    const std::lock_guard held_up(disk.slow);
    for (const int64_t step : {4, 5}) files.write({.step = step});
  }
  CHECK(disk.steps == std::vector<int64_t>{1, 2, 3, 4, 5});
}

TEST_CASE("a disk that is too slow costs values, but no events, and is a warning when it begins and when it ends") {
  log::configure(0, 1, log::Level::kWarning);
  CapturedLog captured;
  Disk disk;
  FileThread files(on({&disk}), 2);
  {
    const std::lock_guard held_up(disk.slow);
    for (const int64_t step : {1, 2, 3, 4}) files.write({.step = step});
    files.write({.step = 5, .event = RunEvent{"stop", "", {}}});
  }
  CHECK(files.flush(kEver));
  files.write({.step = 6});
  CHECK(files.flush(kEver));
  CHECK(disk.steps == std::vector<int64_t>{1, 2, 5, 6});
  const std::string text = captured.text();
  CHECK(times(text, "too slow") == 1);
  CHECK(times(text, "2 record(s) were dropped") == 1);
}

TEST_CASE(
    "a disk that refuses costs its own sink the records of that time: a warning when it begins, and when it has ended") {
  log::configure(0, 1, log::Level::kWarning);
  CapturedLog captured;
  Disk bad, good;
  {
    FileThread files(on({&bad, &good}));
    const auto write = [&](int64_t step, bool refuses) {
      bad.refuses = refuses;
      files.write({.step = step});
      CHECK(files.flush(kEver));
      bad.refuses = false;  // a record that the sink does not take says nothing of the disk
      files.write({.step = 0, .event = RunEvent{"ignored", "", {}}});
      CHECK(files.flush(kEver));
    };
    // A short record now and then finds room on a full disk; five in a row show that it has some.
    for (int64_t step = 1; step <= 12; ++step) write(step, step == 2 || step == 3 || step == 7);
    write(13, true);
  }
  CHECK(bad.steps == std::vector<int64_t>{1, 4, 5, 6, 8, 9, 10, 11, 12});
  CHECK(good.steps.size() == 13);
  const std::string text = captured.text();
  CHECK(times(text, "cannot write disk0; its records are dropped until it can be written again") == 2);
  CHECK(times(text, "disk0 is written again; 3 record(s) were dropped") == 1);
  CHECK(times(text, "disk0: 1 record(s) were dropped") == 1);
  CHECK(times(text, "disk1") == 0);
}

TEST_CASE("metrics.jsonl on a full disk: one warning, one word when there is room, whole lines only") {
  log::configure(0, 1, log::Level::kWarning);
  const TempDir dir;
  const std::string path = dir.file("m");
  const std::string before(1 << 16, ' ');  // more than the captured log has, to which the limit applies too
  write_text_atomically(path, before + "\n", Kind::kBug);
  CapturedLog captured;
  FileThread files(jsonl(path));
  const auto write = [&](int64_t step) {
    files.write({.step = step});
    CHECK(files.flush(kEver));
  };
  write(1);
  {
    const FileSizeLimit limit((1 << 16) + 20);
    for (const int64_t step : {2, 3, 4}) write(step);
  }
  for (const int64_t step : {5, 6, 7, 8, 9}) write(step);
  const std::string text = captured.text();
  CHECK(times(text, str("cannot write ", path, ": File too large; its records are dropped until it can be")) == 1);
  CHECK(times(text, str(path, " is written again; 3 record(s) were dropped")) == 1);
  CHECK(read_text(path, Kind::kBug).substr(before.size()) ==
        "\n{\"step\":1}\n{\"step\":5}\n{\"step\":6}\n{\"step\":7}\n{\"step\":8}\n{\"step\":9}\n");
  int64_t records = 0;
  read_records(path, [&](const MetricRecord&) { ++records; });
  CHECK(records == 6);
}
