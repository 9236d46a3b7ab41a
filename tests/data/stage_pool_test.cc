// Stages run on any thread, in any order, and documents come back in the order in which they went in.
#include "data/prepare/stage_pool.h"

#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

std::vector<std::string> trace(const Batch& batch) {
  std::vector<std::string> out;
  for (const Document& d : batch) out.push_back(str(d.line, ":", d.text, d.dropped ? ":dropped" : ":"));
  return out;
}

struct DropOdd final : Stage {
  bool run(Document& document) override { return document.line % 2 == 0; }
};

// Takes longer for some documents, so that threads overtake each other.
struct Repeat final : Stage {
  bool run(Document& document) override {
    const std::string text = document.text;
    for (int64_t i = 0; i < document.line % 10 * 1000; ++i) document.text += text;
    if (document.line == 901) fail(Kind::kData, "line 901");
    return true;
  }
};

struct Numbered final : DocumentReader {
  Numbered(int64_t first, int64_t count) : next_(first), end_(first + count) {}
  bool next(Document& document) override {
    document = {};
    document.line = next_;
    document.text = str(next_, " ");
    return next_++ < end_;
  }
  int64_t next_, end_;
};

std::vector<std::string> run_all(int64_t threads, Stages (*make)()) {
  StagePool pool(make, threads);
  for (int64_t b = 0; b < 40; ++b) pool.submit(std::make_unique<Numbered>(b * 10, 1 + b % 10));
  std::vector<std::string> out;
  while (pool.pending() > 0) {
    for (std::string& line : trace(pool.take())) out.push_back(std::move(line));
  }
  return out;
}

template <class... S>
Stages make_stages() {
  Stages stages;
  (stages.push_back(std::make_unique<S>()), ...);
  return stages;
}

}  // namespace

TEST_CASE("documents come back in order, changed or marked as dropped, for any number of threads") {
  const std::vector<std::string> one = run_all(1, make_stages<DropOdd, Repeat>);
  CHECK(std::vector(one.begin(), one.begin() + 4) ==
        std::vector<std::string>{"0:0 :", "10:10 :", "11:11 :dropped", "20:20 :"});
  CHECK(run_all(7, make_stages<DropOdd, Repeat>) == one);
  CHECK(run_all(7, make_stages<Repeat, DropOdd>) != one);  // a dropped document skips the stages behind
}

TEST_CASE("a stage's error arrives with its batch, after those before it") {
  StagePool pool(make_stages<Repeat>, 3);
  for (const int64_t first : {100, 901, 300}) pool.submit(std::make_unique<Numbered>(first, 5));
  CHECK(trace(pool.take()).front().starts_with("100:"));
  check_fails(Kind::kData, {"line 901"}, [&] { pool.take(); });
  CHECK(trace(pool.take()).front().starts_with("300:"));
}
