// A list whose items are of several kinds, each with options of its own: the stages of data preparation.
#include <catch2/catch.hpp>

#include "base/file.h"
#include "config/options_file.h"
#include "config/yaml.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

struct Cut {
  static constexpr const char* kName = "cut";
  int64_t length = 10;
  template <class Visitor>
  void fields(Visitor& v) {
    v("length", length, "bytes");
  }
};
struct Sort {
  static constexpr const char* kName = "sort";
  std::vector<std::string> by = {"name"};
  template <class Visitor>
  void fields(Visitor& v) {
    v("by", by, "members");
  }
};
struct Work {
  std::string name;
  std::vector<std::variant<Cut, Sort>> steps;
  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "name");
    v("steps", steps, "steps");
  }
};

Work loaded(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  write_text_atomically(dir.file("w.yaml"), text, Kind::kConfig);
  return load_options<Work>(dir.file("w.yaml"), overrides, [](const Work& work) {
    std::vector<FieldError> found;
    for (size_t i = 0; i < work.steps.size(); ++i)
      if (const auto* cut = std::get_if<Cut>(&work.steps[i]); cut != nullptr && cut->length < 0)
        found.push_back({str("steps[", i, "].cut.length"), "the length is negative", ""});
    return found;
  });
}

std::string problem_of(const std::string& text) {
  try {
    loaded(text);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return str(error.what(), " (", error.hint(), ")");
  }
  FAIL("accepted:\n" << text);
  return "";
}

}  // namespace

TEST_CASE("items are of the kind that their only key names, with its options or its defaults") {
  const Work work = loaded("name: n\nsteps:\n  - cut: {length: 3}\n  - sort\n  - sort:\n  - cut:\n      length: 1Ki\n",
                           {"steps[0].cut.length=4"});
  REQUIRE(work.steps.size() == 4);
  CHECK(std::get<Cut>(work.steps[0]).length == 4);
  CHECK(std::get<Sort>(work.steps[1]).by == std::vector<std::string>{"name"});
  CHECK(std::get<Sort>(work.steps[2]).by == std::vector<std::string>{"name"});
  CHECK(std::get<Cut>(work.steps[3]).length == 1024);
}

TEST_CASE("what is printed is read back") {
  const Work work = loaded("steps: [{sort: {by: [a, b]}}, cut]");
  const std::string text = emit_yaml(tree_of(work), Help::kNone);
  const Work back = loaded(text);
  REQUIRE(back.steps.size() == 2);
  CHECK(std::get<Sort>(back.steps[0]).by == std::vector<std::string>{"a", "b"});
  CHECK(emit_yaml(tree_of(back), Help::kNone) == text);
}

TEST_CASE("a wrong kind, key or value is named with its place") {
  const auto contains = [](const std::string& text) { return Catch::Contains(text); };
  CHECK_THAT(problem_of("steps: [cat]"),
             contains("w.yaml:1") && contains("must be one of cut, sort") && contains("did you mean 'cut'?"));
  CHECK_THAT(problem_of("steps:\n  - cut: {length: 1}\n    sort: {}\n"),
             contains("w.yaml:2") && contains("'steps[0]'") && contains("one kind with its options"));
  CHECK_THAT(problem_of("steps:\n  - sort\n  - cut: {lenght: 1}\n"),
             contains("w.yaml:3") && contains("'steps[1].cut.lenght'") && contains("did you mean 'length'?"));
  CHECK_THAT(problem_of("steps:\n  - sort\n  - cut: {length: x}\n"),
             contains("w.yaml:3") && contains("'steps[1].cut.length'"));
  CHECK_THAT(problem_of("steps:\n  - sort\n  - cut: {length: -1}\n"), contains("w.yaml:3: the length is negative"));
  CHECK_THAT(problem_of("step: []"), contains("'step'") && contains("did you mean 'steps'?"));
}
