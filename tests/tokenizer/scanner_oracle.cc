// Answers scanner_oracle_test.py, which knows what Hugging Face tokenizers and tiktoken say. A request is two
// strings, each after its size in 4 bytes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "scanned.h"
#include "tokenizer/scan/normalization.h"

using namespace tokamak;

namespace {

class Requests {
 public:
  Requests() : all_(read_text(std::getenv("TOKAMAK_SCAN_REQUESTS"), Kind::kData)) {}
  ~Requests() { write_text_atomically(std::getenv("TOKAMAK_SCAN_ANSWERS"), answers_, Kind::kData); }

  bool more() const { return at_ < all_.size(); }
  std::string_view next() {
    uint32_t size;
    std::memcpy(&size, all_.data() + at_, 4);
    at_ += 4 + size;
    return std::string_view(all_).substr(at_ - size, size);
  }
  void answer(const void* data, size_t count, size_t each) {
    const auto number = static_cast<uint32_t>(count);
    answers_.append(reinterpret_cast<const char*>(&number), 4);
    answers_.append(static_cast<const char*>(data), count * each);
  }

 private:
  std::string all_, answers_;
  size_t at_ = 0;
};

// The first string is patterns, each but the last before a zero byte.
template <class Make>
void answer_pieces(Make make) {
  Requests requests;
  std::string last;
  std::unique_ptr<Scanner> scanner;
  while (requests.more()) {
    if (const std::string all(requests.next()); all != last || !scanner) {
      const std::vector<std::string> patterns = split(all, '\0');
      scanner = make(std::vector<std::string_view>(patterns.begin(), patterns.end()));
      last = all;
    }
    const std::vector<uint32_t> ends = ends_of(*scanner, requests.next());
    requests.answer(ends.data(), ends.size(), 4);
  }
}

}  // namespace

TEST_CASE("oracle: PCRE2", "[.oracle]") {
  answer_pieces([](const auto& patterns) { return make_pattern_scanner(patterns[0]); });
}

TEST_CASE("oracle: scanner", "[.oracle]") {
  answer_pieces([](const auto& patterns) {
    REQUIRE(scanner_family(patterns) != "");
    return make_scanner(patterns);
  });
}

TEST_CASE("oracle: scanner without vectors", "[.oracle]") {
  answer_pieces([](const auto& patterns) { return make_scanner(patterns, Simd::kNone); });
}

TEST_CASE("oracle: normal form", "[.oracle]") {
  Requests requests;
  while (requests.more()) {
    const std::string_view form = requests.next();
    const std::string_view text = requests.next();
    std::string out;
    (form == "NFC" ? append_nfc : append_nfkc)(text, out);
    requests.answer(out.data(), out.size(), 1);
  }
}
