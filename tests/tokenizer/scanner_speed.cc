// MB/s of each scanner and path, by CPU time of one thread, interleaved, best of 7. By hand:
//   TOKAMAK_SCAN_TEXTS="en.txt code.txt" taskset -c 1 test_tokenizer 'speed of the scanners'
#include <time.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "scanned.h"
#include "tokenizer/scan/normalization.h"

using namespace tokamak;

namespace {

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

}  // namespace

TEST_CASE("speed of the scanners", "[.benchmark]") {
  for (const std::string& path : split(std::getenv("TOKAMAK_SCAN_TEXTS"), ' ')) {
    const std::string text = read_text(path, Kind::kData);
    const double mega = 1e-6 * double(text.size());
    std::vector<uint32_t> ends(256);
    for (const std::string_view family : scanner_families()) {
      const std::span<const std::string_view> patterns = patterns_named(family);
      std::vector<std::unique_ptr<Scanner>> scanners;
      scanners.push_back(make_scanner(patterns, Simd::kBest));
      scanners.push_back(make_scanner(patterns, Simd::kAvx2));
      scanners.push_back(make_scanner(patterns, Simd::kNone));
      if (patterns.size() == 1) scanners.push_back(make_pattern_scanner(patterns[0]));
      double best[4] = {1e9, 1e9, 1e9, 1e9};
      size_t pieces = 0;
      for (int round = 0; round < 7; ++round)
        for (size_t i = 0; i < scanners.size(); ++i) {
          if (i == 3 && round > 1) continue;
          const double start = cpu_seconds();
          size_t at = 0;
          pieces = 0;
          while (const size_t count = scanners[i]->scan(text, at, ends)) {
            pieces += count;
            at = ends[count - 1];
          }
          best[i] = std::min(best[i], cpu_seconds() - start);
        }
      std::printf("%-24s %-9s best %5.0f  AVX2 %5.0f  scalar %5.0f  PCRE2 %4.0f MB/s  %.2f B/piece\n", path.c_str(),
                  std::string(family).c_str(), mega / best[0], mega / best[1], mega / best[2], mega / best[3],
                  double(text.size()) / double(pieces));
    }
    double nfc = 1e9, prefix = 1e9;
    for (int round = 0; round < 7; ++round) {
      double start = cpu_seconds();
      std::string out;
      append_nfc(text, out);
      nfc = std::min(nfc, cpu_seconds() - start);
      start = cpu_seconds();
      static_cast<void>(nfc_prefix(text));
      prefix = std::min(prefix, cpu_seconds() - start);
    }
    std::printf("%-24s NFC %.0f MB/s, quick check %.0f MB/s\n", path.c_str(), mega / nfc, mega / prefix);
  }
}
