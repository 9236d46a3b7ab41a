#include "bench/tokenizer_benchmark.h"

#include <algorithm>
#include <barrier>
#include <ctime>
#include <limits>
#include <thread>

#include "base/error.h"

namespace tokamak {

namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

}  // namespace

TokenizerTimes benchmark_tokenizer(const Tokenizer& tokenizer, const TokenizerBenchmarkOptions& options) {
  const std::array<const std::vector<std::string_view>*, 3> texts = {&options.first, &options.second, &options.second};
  TokenizerTimes times;
  times.passes[0].name = "cold";
  times.passes[1].name = "fresh";
  times.passes[2].name = "warm";
  for (size_t p = 0; p < texts.size(); ++p) {
    for (const std::string_view document : *texts[p]) times.passes[p].bytes += std::ssize(document);
    times.passes[p].seconds = std::numeric_limits<double>::max();
  }
  struct Round {
    std::array<double, 3> seconds{};
    std::array<int64_t, 3> ids{};
  };
  for (int64_t round = 0; round < options.rounds; ++round) {
    std::vector<Round> measured(static_cast<size_t>(options.threads));
    std::barrier start(options.threads);
    std::vector<std::thread> threads;
    for (Round& mine : measured) {
      threads.emplace_back([&] {
        const std::unique_ptr<Encoder> encoder = tokenizer.make_encoder();
        std::vector<int32_t> ids;
        for (size_t p = 0; p < texts.size(); ++p) {
          start.arrive_and_wait();
          const double begin = thread_seconds();
          for (const std::string_view document : *texts[p]) {
            ids.clear();
            encoder->encode(document, ids);
            mine.ids[p] += std::ssize(ids);
          }
          mine.seconds[p] = thread_seconds() - begin;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t p = 0; p < texts.size(); ++p) {
      double slowest = 0;
      for (const Round& one : measured) {
        slowest = std::max(slowest, one.seconds[p]);
        TOKAMAK_CHECK(one.ids[p] == measured[0].ids[p], one.ids[p], " and ", measured[0].ids[p], " ids");
      }
      times.passes[p].ids = measured[0].ids[p];
      times.passes[p].seconds = std::min(times.passes[p].seconds, slowest);
    }
  }
  return times;
}

std::vector<std::string_view> documents_of(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    documents.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return documents;
}

}  // namespace tokamak
