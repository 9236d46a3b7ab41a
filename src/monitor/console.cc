// The sink of the log.
#include <optional>

#include "base/log.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "monitor/live_line.h"
#include "monitor/sink.h"

namespace tokamak {

namespace {

// About 100 columns at most, with the log's time. Only the files have the other kinds of MFU and the memory in use.
std::string interval_text(const MetricRecord& record) {
  const char* const mfu = "throughput/mfu_full";
  const double skipped = record.at("optim/skipped_steps");
  return str("  loss ", fixed(record.at("loss/avg"), 4), "  lr ", significant(record.at("optim/lr"), 3), "  grad norm ",
             fixed(record.at("optim/grad_norm"), 2), "  ", human_count(record.at("throughput/tokens_per_sec")),
             " tokens/s", record.has(mfu) ? str("  mfu_full ", fixed(100.0 * record.at(mfu), 1), "%") : "", "  eta ",
             human_duration(record.eta.value()), skipped > 0 ? str("  skipped ", fixed(skipped, 0)) : "");
}

std::string seconds_text(double seconds) { return str("  (", fixed(seconds, 1), " s)"); }

std::string validation_text(const MetricRecord& record) {
  const std::string name = "validation/bits_per_byte", of_average = "validation/loss_";
  std::string averages;
  for (const NamedValue& one : record.values) {
    if (starts_with(one.name, of_average)) {
      averages += str("  ", printable(one.name.substr(of_average.size())), " ", fixed(one.value, 4));
    }
  }
  return str("  validation loss ", fixed(record.at("validation/loss"), 4), "  perplexity ",
             fixed(record.at("validation/perplexity"), 2),
             record.has(name) ? str("  bits/byte ", fixed(record.at(name), 4)) : "", averages,
             seconds_text(record.at("time/validation")));
}

std::string evals_text(const MetricRecord& record) {
  const std::string prefix = "evals/";
  std::string text;
  for (const NamedValue& one : record.values) {
    if (starts_with(one.name, prefix))
      text += str("  ", printable(one.name.substr(prefix.size())), " ", fixed(one.value, 4));
  }
  return text + seconds_text(record.at("time/evals"));
}

// One line without line breaks, escape sequences and invalid UTF-8, cut to 100 characters.
std::string one_line(const std::string& text) {
  constexpr int64_t kMostCharacters = 100;
  std::string line;
  int64_t characters = 0;
  for (std::string_view rest = text; !rest.empty(); ++characters) {
    if (characters == kMostCharacters) return line + "...";
    const Utf8Char first = decode_utf8(rest);
    const bool shown = first.code >= 0x20 && !(0x7F <= first.code && first.code < 0xA0) && first.code != kInvalidUtf8;
    line += shown ? rest.substr(0, static_cast<size_t>(first.length)) : " ";
    rest.remove_prefix(static_cast<size_t>(first.length));
  }
  return line;
}

std::string samples_text(const MetricRecord& record) {
  std::string text = str("  samples", seconds_text(record.at("time/samples")));
  for (const SampleText& one : record.samples) text += str("\n  ", one_line(one.prompt + one.text));
  return text;
}

// Events print no line here, because the code that causes an event logs it.
class Console : public Sink {
 public:
  explicit Console(int64_t total_steps) : total_steps_(total_steps) {}

  void step(int64_t step) override {
    if (live_) live_->step(step);
  }

  void write(const MetricRecord& record) override {
    if (record.is("ready") && log::has_terminal()) live_.emplace(record.step, total_steps_);
    if (record.is("end")) live_.reset();
    if (live_ && record.has("time/interval")) live_->interval(record);
    const std::string step = str("step ", record.step, "/", total_steps_);
    if (record.has("time/interval")) log::info(step, interval_text(record));
    if (record.has("time/validation")) log::info(step, validation_text(record));
    if (record.has("time/evals")) log::info(step, evals_text(record));
    if (record.has("time/samples")) log::info(step, samples_text(record));
  }

 private:
  int64_t total_steps_;
  std::optional<LiveLine> live_;  // from the event "ready" to "end"
};

}  // namespace

std::unique_ptr<Sink> console_sink(int64_t total_steps) { return std::make_unique<Console>(total_steps); }

}  // namespace tokamak
