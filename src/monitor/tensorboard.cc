// RUN/tensorboard: the records of a run for TensorBoard (tfevents.h). Values are scalars under their names. Events
// (events/stop), the config of each start and the samples (samples/1: of the first prompt) are texts. The config's keys
// are also a row of the table HPARAMS. Statistics of tensors are weights/NAME/rms, gradients/NAME/rms, updates/NAME/rms
// and updates/NAME/ratio as scalars, weights/NAME/log2 and so on as histograms of log2 |x| without zeros.
//
// Each start writes a file of its own that names the step it continues from; readers then drop the later steps of
// earlier files. A start that ends before its first step leaves nothing here.
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "monitor/sink.h"
#include "monitor/tfevents.h"

namespace tokamak {

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

double wall_time(const MetricRecord& record) { return 1e-3 * static_cast<double>(record.time); }

// The event's detail, and a table of its texts and values.
void add_event(tfevents::Summary& summary, const MetricRecord& record) {
  const RunEvent& event = *record.event;
  std::string text = event.detail.empty() ? event.name : event.detail;
  if (!event.texts.empty() || !record.values.empty()) text += "\n\n| | |\n|-|-|\n";
  for (const NamedText& one : event.texts) text += str("| ", one.name, " | ", one.text, " |\n");
  for (const NamedValue& one : record.values) {
    text += str("| ", one.name, " | ", one.whole ? fixed(one.value, 0) : significant(one.value, 6), " |\n");
  }
  summary.add_text("events/" + event.name, text);
}

// Encloses the text in fences of more backticks than it has in a row, so that none of it is read as markdown.
std::string fenced(const std::string& text) {
  size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return str(fence, "\n", text, "\n", fence, "\n");
}

void add_tensor(tfevents::Summary& summary, const TensorRecord& tensor) {
  for (const auto& [kind, values] : tensor.parts) {
    const std::string name = str(kind, "/", tensor.name, "/");
    summary.add_scalar(name + "rms", values.rms);
    if (!values.counts.empty()) summary.add_histogram(name + "log2", values.first, values.counts);
    if (kind == tensor_kinds::kUpdates) summary.add_scalar(name + "ratio", tensor.update_ratio());
    if (kind == tensor_kinds::kActivations) summary.add_scalar(name + "greatest", values.greatest());
  }
}

class TensorBoard : public FileSink {
 public:
  TensorBoard(const std::string& directory, const RunFacts& run) : directory_(directory), run_(run) {
    make_directories(directory, Kind::kConfig);
  }

  const std::string& path() const override { return directory_; }

  void write(const MetricRecord& record) override {
    if (!ready_ && !record.is("ready")) return before_.push_back(record);
    if (!ready_) begin(record);
    if (record.is("rollback")) {
      first_ += tfevents::session_start(wall_time(record), record.step + 1);
      newest_.clear();  // these steps come again
    }
    tfevents::Summary summary;
    if (record.event) {
      add_event(summary, record);
    } else {
      for (const NamedValue& one : record.values) {
        // Several records of one step may have "tokens". It is written once, since readers in Python show every copy.
        const auto [last, first] = newest_.try_emplace(one.name, record.step);
        if (first || last->second != record.step) summary.add_scalar(one.name, one.value);
        last->second = record.step;
      }
      for (size_t i = 0; i < record.samples.size(); ++i) {
        const SampleText& one = record.samples[i];
        summary.add_text(str("samples/", i + 1), str("prompt\n\n", fenced(one.prompt), "\ntext\n\n", fenced(one.text)));
      }
      for (const TensorRecord& tensor : record.tensors) add_tensor(summary, tensor);
    }
    append(summary.record(wall_time(record), record.step));
  }

 private:
  void begin(const MetricRecord& ready) {
    ready_ = true;
    tfevents::Summary summary;
    for (const MetricRecord& earlier : before_) add_event(summary, earlier);
    before_.clear();
    summary.add_text("config", str("```yaml\n", run_.config_text, "```\n"));
    summary.add_hparams(run_.settings, wall_time(ready));
    // Records of the checkpoint's own step stay valid, hence step + 1.
    first_ = tfevents::session_start(wall_time(ready), ready.step + 1) + summary.record(wall_time(ready), ready.step);
  }

  // A failed write ends the file, since readers stop at a damaged record that is not the last. The next write begins a
  // new file.
  void append(const std::string& bytes) {
    const bool begins = !file_;
    try {
      if (begins) file_.emplace(directory_ + "/" + next_name(), Kind::kConfig);
      const std::string head = begins ? tfevents::file_version(unix_seconds()) : "";
      file_->write(head + first_ + bytes);
    } catch (const Error&) {
      if (begins && file_) ::unlink(file_->path().c_str());
      file_.reset();
      throw;
    }
    first_.clear();
  }

  // Readers take files in the order of their names. Clocks go back and differ between hosts, so the name's seconds
  // exceed those of all files.
  std::string next_name() const {
    auto seconds = static_cast<int64_t>(unix_seconds());
    for (const std::string& name : list_directory(directory_, Kind::kConfig)) {
      if (!starts_with(name, kPrefix)) continue;
      seconds = std::max<int64_t>(seconds, std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10) + 1);
    }
    char digits[24];
    std::snprintf(digits, sizeof(digits), "%010" PRId64, seconds);
    return str(kPrefix, digits, ".", host_name(), ".", ::getpid(), ".0");
  }

  const std::string directory_;
  const RunFacts run_;
  bool ready_ = false;
  std::vector<MetricRecord> before_;  // events up to "ready", which has their step
  std::string first_;                 // the first records of this start; empty once they are written
  std::optional<OutputFile> file_;
  std::map<std::string, int64_t> newest_;  // the step of a name's newest value
};

}  // namespace

std::unique_ptr<FileSink> tensorboard_sink(const std::string& directory, const RunFacts& run) {
  return std::make_unique<TensorBoard>(directory, run);
}

}  // namespace tokamak
