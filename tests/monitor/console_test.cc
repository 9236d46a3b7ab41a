#include "monitor/sink.h"

#include <catch2/catch.hpp>

#include "support/captured_log.h"

using namespace tokamak;
using Catch::EndsWith;

namespace {

std::string logged(const MetricRecord& record) {
  log::configure(0, 1, log::Level::kInfo);
  CapturedLog captured;
  console_sink(1000)->write(record);
  const std::string text = captured.text();
  log::configure(0, 1, log::Level::kError);
  return text;
}

MetricRecord interval(int64_t skipped) {
  return {.step = 125,
          .values = {{"loss/avg", 3.14159},
                     {"optim/lr", 0.00030000001},
                     {"optim/grad_norm", 1.005},
                     count_value("optim/skipped_steps", skipped),
                     {"throughput/tokens_per_sec", 123456},
                     {"throughput/mfu_full", 0.5},
                     {"throughput/mfu_causal", 0.25},
                     {"throughput/mfu_done", 0.125},
                     {"time/interval", 1},
                     count_value("memory/used", 3 << 20)},
          .eta = 3725};
}

}  // namespace

TEST_CASE("an interval is one line, which counts skipped steps where there are any") {
  const std::string begin = "step 125/1000  loss 3.1416  lr 0.0003  grad norm 1.00  123K tokens/s",
                    end = "  eta 1:02:05";
  const std::string line = begin + "  mfu_full 50.0%" + end;
  CHECK_THAT(logged(interval(0)), EndsWith(line + "\n"));
  CHECK(logged(interval(0)).size() <= 120);
  CHECK_THAT(logged(interval(12)), EndsWith(line + "  skipped 12\n"));
  MetricRecord record = interval(0);
  std::erase_if(record.values, [](const NamedValue& one) { return starts_with(one.name, "throughput/mfu"); });
  CHECK_THAT(logged(record), EndsWith(begin + end + "\n"));
  CHECK(logged(record).size() <= 100);
}

TEST_CASE("validations and evaluations are a line each, samples one for each prompt, events none") {
  CHECK_THAT(logged({.step = 10,
                     .values = {count_value("tokens", 5),
                                {"validation/loss", 2},
                                {"validation/perplexity", 7.389},
                                {"time/validation", 0.26}}}),
             EndsWith(" step 10/1000  validation loss 2.0000  perplexity 7.39  (0.3 s)\n"));
  CHECK_THAT(
      logged({.step = 10,
              .values = {{"validation/loss", 2},
                         {"validation/perplexity", 7.389},
                         {"validation/bits_per_byte", 1.25},
                         {"validation/loss_ema", 1.75},
                         {"time/validation", 0.26}}}),
      EndsWith(" step 10/1000  validation loss 2.0000  perplexity 7.39  bits/byte 1.2500  ema 1.7500  (0.3 s)\n"));
  CHECK_THAT(
      logged({.step = 10,
              .values =
                  {count_value("tokens", 5), {"evals/arc/acc", 0.5}, {"evals/piqa/acc", 0.75}, {"time/evals", 1.25}}}),
      EndsWith(" step 10/1000  arc/acc 0.5000  piqa/acc 0.7500  (1.2 s)\n"));
  CHECK_THAT(logged({.step = 10, .values = {{"evals/a\nb/acc", 0.5}, {"time/evals", 1.25}}}),
             EndsWith(" step 10/1000  a\\nb/acc 0.5000  (1.2 s)\n"));
  // As lines of their own, cut, and with nothing in them that a terminal would obey.
  CHECK_THAT(logged({.step = 10,
                     .values = {count_value("tokens", 5), {"time/samples", 0.26}},
                     .samples = {{"It was", " a\nday\x1b[2J\xC2\x9B."}, {"\xC3\x89t\xC3\xA9", std::string(200, 'x')}}}),
             EndsWith(" step 10/1000  samples  (0.3 s)\n  It was a day [2J .\n  \xC3\x89t\xC3\xA9" +
                      std::string(97, 'x') + "...\n"));
  CHECK(logged({.step = 10, .event = RunEvent{"checkpoint", "here", {}}}).empty());
}
