// Every field of every section, filled with random values, printed, read and compared bit by bit. The comparison walks
// the fields itself: it does not trust the printer.
#include <bit>
#include <map>
#include <random>

#include "config/options_tree.h"
#include "config/print.h"
#include "config/read.h"
#include "config/sample.h"

using namespace tokamak;

namespace {

class RandomFill {
 public:
  explicit RandomFill(uint64_t seed) : random_(seed) {}

  template <class T>
  void operator()(const char* /*name*/, T& value, const char* /*help*/) {
    fill(value);
  }

 private:
  template <class T>
  void fill(T& value) {
    if constexpr (OptionsStruct<T>) {
      value.fields(*this);
    } else if constexpr (kIsVector<T>) {
      value.resize(random_() % 4);
      for (auto& item : value) fill(item);
    } else if constexpr (kIsArray<T>) {
      for (auto& item : value) fill(item);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(random_() % enum_names(value).size());
    } else {
      set(value);
    }
  }

  void set(bool& value) { value = random_() % 2 == 0; }
  void set(int64_t& value) { value = static_cast<int64_t>(random_() >> (random_() % 64)) | (random_() % 2 ? 0 : 1); }
  void set(double& value) {
    do {
      value = std::bit_cast<double>(random_());
    } while (!std::isnormal(value));
    if (random_() % 2 == 0) value = static_cast<double>(random_() % 100000) / 1000;
  }
  void set(AutoInt& value) { value.value = static_cast<int64_t>(random_() % 3 == 0 ? 0 : random_() % 1000); }
  void set(AutoNumber& value) {
    value.value = random_() % 3 == 0 ? -1 : static_cast<double>(random_() % 100000) / 1000;
  }
  void set(AutoLimit& value) { value.value = static_cast<int64_t>(random_() % 1000) - 1; }
  void set(Duration& value) { value.seconds = static_cast<double>(random_() % 1000000) / (random_() % 2 ? 1 : 1000); }
  void set(TrainingLength& value) {
    const double whole = static_cast<double>(random_() >> (11 + random_() % 50));
    const double real = std::ldexp(static_cast<double>(random_() >> 11), -static_cast<int>(random_() % 100));
    switch (random_() % 5) {
      case 0:
        value = TrainingLength::none();
        break;
      case 1:
        value = TrainingLength::steps(whole);
        break;
      case 2:
        value = TrainingLength::tokens(random_() % 2 ? whole : static_cast<double>(random_() % 1000) * 1e9);
        break;
      case 3:
        value = TrainingLength::fraction(real);
        break;
      default:
        value = TrainingLength::seconds(random_() % 2 ? real : static_cast<double>(random_() % 100000));
    }
  }
  void set(std::string& value) {
    static const std::vector<std::string> awkward = {
        "",          " ",       "true",   "null", "~",         "5",    "1e5",
        "a: b",      "a #b",    "#",      "- x",  "[a]",       "{a}",  "a,b",
        "'",         "\"q\"",   "\\n",    "\n",   "tab\there", "é ü",  "%",
        "@at",       "&anchor", "*alias", "!t",   "|",         ">",    "a$b{c}",
        "x\x01",     " pad ",   "yes",    "No",   "0x10",      ".inf", "runs/a-b_c.d",
        "2024-01-01"};
    value = awkward[random_() % awkward.size()];
    for (uint64_t i = random_() % 3; i > 0; --i) value += static_cast<char>(' ' + random_() % 95);
    if (value.find("${") != std::string::npos) value = "reference";  // would be resolved
  }

  std::mt19937_64 random_;
};

// Every leaf as path -> exact text.
class Flatten {
 public:
  template <class T>
  void operator()(const char* name, T& value, const char* /*help*/) {
    add(str(path_, ".", name), value);
  }
  std::map<std::string, std::string> leaves;

 private:
  template <class T>
  void add(const std::string& path, T& value) {
    if constexpr (OptionsStruct<T>) {
      const std::string outer = std::exchange(path_, path);
      value.fields(*this);
      path_ = outer;
    } else if constexpr (kIsVector<T> || kIsArray<T>) {
      leaves[path] = str(value.size());
      for (size_t i = 0; i < value.size(); ++i) add(str(path, i), value[i]);
    } else if constexpr (std::is_enum_v<T>) {
      leaves[path] = str(static_cast<int>(value));
    } else if constexpr (std::is_same_v<T, AutoNumber>) {
      leaves[path] = str(std::bit_cast<uint64_t>(value.value));
    } else if constexpr (std::is_same_v<T, double>) {
      leaves[path] = str(std::bit_cast<uint64_t>(value));
    } else if constexpr (std::is_same_v<T, TrainingLength>) {
      leaves[path] = str(static_cast<int>(value.unit), " ", std::bit_cast<uint64_t>(value.value));
    } else if constexpr (std::is_same_v<T, Duration>) {
      leaves[path] = str(std::bit_cast<uint64_t>(value.seconds));
    } else if constexpr (std::is_same_v<T, AutoInt> || std::is_same_v<T, AutoLimit>) {
      leaves[path] = str(value.value);
    } else {
      leaves[path] = str(value);
    }
  }

  std::string path_;
};

std::map<std::string, std::string> leaves_of(RunConfig config) {
  Flatten flatten;
  config.fields(flatten);
  return flatten.leaves;
}

}  // namespace

TEST_CASE("a config of random values reads back as it was printed, bit by bit") {
  const Help help = GENERATE(Help::kNone, Help::kTrailing);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RunConfig config;
    RandomFill fill(seed);
    config.fields(fill);
    const std::string text = print_config(config, help);
    CAPTURE(seed, text);
    const RunConfig again = read_config(text, "printed", {}).config;
    REQUIRE(leaves_of(again) == leaves_of(config));
    REQUIRE(print_config(again, help) == text);
  }
}

TEST_CASE("the printed config shows every default, resolved") {
  const std::string text = print_config(parse_config(kSample, "c.yaml", {"run.name=a"}));
  CHECK_THAT(
      text,
      Catch::StartsWith(
          "run:\n  name: a\n  output_dir: runs/a\n  seed: 1234\n  stop_after: none\n\nmodel:\n  hidden_size: 64\n"));
  CHECK_THAT(text, Catch::Contains("  sources:\n    - path: some/data\n      weight: 1\n      format: auto\n"));
  CHECK_THAT(text, Catch::Contains("    - path: other/data\n      weight: 3\n      format: auto\n"));
  CHECK_THAT(text, Catch::Contains("      max_epochs: 0\n  validation: []\n"));
  CHECK_THAT(text, Catch::Contains("  betas: [0.9, 0.95]\n  eps: 1e-8\n"));
  CHECK_THAT(text, Catch::Contains("  warmup: 1%\n"));
  CHECK_THAT(text, Catch::Contains("\nruntime:\n  backend: auto\n  attention: auto\n"));
  CHECK_THAT(text, !Catch::Contains("#"));
}

TEST_CASE("one key's value is printed as it is, for scripts") {
  const RunConfig config = parse_config(kSample, "c.yaml", {"run.output_dir=\"a #b \\\"c\\\" \\x1b\""});
  CHECK(print_value(config, "run.output_dir") == "a #b \"c\" \x1b");
  CHECK(print_value(config, "data.sources[1].weight") == "3");
  CHECK_THROWS_WITH(print_value(config, "run.output"), "'run.output' is not a key with a single value");
  CHECK_THROWS_WITH(print_value(config, "run"), "'run' is not a key with a single value");
}

TEST_CASE("with help each key is followed by its meaning") {
  const std::string text = print_config(parse_config(kSample, "c.yaml", {}), Help::kTrailing);
  CHECK_THAT(text, Catch::Contains("  lr: 0.0003  # peak learning rate; "));
  CHECK_THAT(text, Catch::Contains("    - path: some/data\n"));
}
