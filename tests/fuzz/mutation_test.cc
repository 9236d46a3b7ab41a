// Valid files with some damage, thousands of them and always the same ones: a reader accepts or refuses, and under the
// sanitizers touches nothing that is not its own. libFuzzer looks further: scripts/dev/fuzz.sh.
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "fuzz/targets.h"

using namespace tokamak;

namespace {

// Inputs that break readers: extremes as text and as bytes, and characters with a meaning.
const std::vector<std::string> kWords = {"18446744073709551615",
                                         "9223372036854775807",
                                         "-1",
                                         "0",
                                         "1e999",
                                         "null",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"",
                                         "\\u0000",
                                         "F32",
                                         "BF16",
                                         "../x",
                                         "__metadata__",
                                         std::string(1, '\0'),
                                         std::string(8, '\xFF'),
                                         std::string(7, '\xFF') + "\x7F",
                                         std::string("\x00\x00\x00\x00\x00\x00\x00\x80", 8),
                                         std::string(20, '['),
                                         "\"rope_type\": \"yarn\"",
                                         "true",
                                         "\xC0\x80"};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    for (uint64_t n = 1 + random_() % 4; n > 0; --n) damage_once(bytes);
    return bytes;
  }

 private:
  size_t place(const std::string& bytes) { return random_() % (bytes.size() + 1); }

  void damage_once(std::string& bytes) {
    const size_t at = place(bytes);
    const size_t length = std::min<size_t>(random_() % 12, bytes.size() - at);
    const std::string& word = kWords[random_() % kWords.size()];
    switch (random_() % 7) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        return;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
        return;
      case 2:
        bytes.erase(at, length);
        return;
      case 3:
        bytes.insert(at, word);
        return;
      case 4:
        bytes.replace(at, length, word);
        return;
      case 5:
        bytes.insert(place(bytes), bytes.substr(at, length * 8));
        return;
      default:
        if (random_() % 4 == 0) bytes.resize(at);
        return;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("a damaged file is accepted or refused by name, whatever it is") {
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(target.name);
    const std::string sample = target.sample();
    REQUIRE(target.read(sample) == fuzz::Verdict::kAccepted);
    Mutator mutator(1);
    int accepted = 0;
    for (int i = 0; i < target.cases; ++i)
      accepted += target.read(mutator.damage(sample)) == fuzz::Verdict::kAccepted ? 1 : 0;
    // Damage that reaches nothing proves nothing, and neither does damage that the first check refuses.
    CHECK(accepted > target.cases / 1000);
    CHECK(accepted < target.accepts * target.cases);
  }
}

TEST_CASE("a file that is nothing but open brackets is refused at once") {
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(target.name);
    if (target.reads_any_text) continue;
    for (const char* bracket : {"[", "{", "{\"a\":", "- ", "\n "}) {
      std::string text;
      while (text.size() < 100000) text += bracket;
      CHECK(target.read(text) == fuzz::Verdict::kRefused);
    }
  }
}
