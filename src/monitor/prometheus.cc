// The newest values of a run in Prometheus's text format (prometheus.io/docs/instrumenting/exposition_formats), for the
// textfile collector of its node exporter. The file is replaced as a whole.
//   # HELP tokamak_loss_avg loss/avg
//   # TYPE tokamak_loss_avg gauge
//   tokamak_loss_avg{run="small",host="node7"} 2.31
// A gauge has the value's name in metrics.jsonl. If an event's value has no "/" in its name, the event's name precedes
// it: tokamak_end_exit_code. The file stays after the run. tokamak_running is then 0, or 1 if the run was killed.
#include <charconv>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/process.h"
#include "monitor/sink.h"

namespace tokamak {

namespace {

// A name may have letters, digits and underscores.
std::string metric_name(std::string name) {
  for (char& c : name) {
    const bool fits = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
    if (!fits) c = '_';
  }
  return name;
}

// Puts a backslash before each of `marks`, and \\n for a line break.
std::string escaped(const std::string& text, std::string_view marks) {
  std::string out;
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

std::string label_text(const std::string& text) { return escaped(text, "\\\""); }

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};  // the shortest text of this number
}

class PrometheusFile : public FileSink {
 public:
  PrometheusFile(const std::string& path, const RunFacts& run, const std::string& host)
      : path_(path),
        temporary_(str(path, ".tmp-", process_name())),
        labels_(str("run=\"", label_text(run.name), "\",host=\"", label_text(host), "\"")) {
    if (!is_directory(parent_directory(path))) {
      fail(Kind::kConfig, str("metrics.prometheus: no directory ", parent_directory(path), " for ", path),
           "name a file in the directory of the node exporter's textfile collector");
    }
    set("total_steps", "steps of the run", static_cast<double>(run.total_steps));
  }

  const std::string& path() const override { return path_; }

  void write(const MetricRecord& record) override {
    set("running", "1 until the run has recorded its end", record.is("end") ? 0 : 1);
    set("record_timestamp_seconds", "when the newest record was made", 1e-3 * static_cast<double>(record.time));
    if (record.event) ++events_[record.event->name];
    if (!record.is("start")) set("step", "of the newest record", static_cast<double>(record.step));
    if (record.eta) set("eta_seconds", "to the end of the run", *record.eta);
    for (const NamedValue& one : record.values) {
      const bool grouped = !record.event || one.name.find('/') != std::string::npos;
      const std::string name = grouped ? one.name : str(record.event->name, "/", one.name);
      set(metric_name(name), name, one.value);
    }
    // Not synced, because a crash of the machine ends the run too.
    OutputFile file(temporary_, Kind::kConfig);
    file.write(text());
    file.close();
    rename_path(temporary_, path_, Kind::kConfig);
  }

 private:
  void set(const std::string& name, const std::string& help, double value) { gauges_[name] = {help, value}; }

  std::string text() const {
    std::string out;
    for (const auto& [name, gauge] : gauges_) {
      out += str("# HELP tokamak_", name, " ", escaped(gauge.help, "\\"), "\n# TYPE tokamak_", name, " gauge\ntokamak_",
                 name, "{", labels_, "} ", number(gauge.value), "\n");
    }
    if (events_.empty()) return out;
    out += "# HELP tokamak_events_total events since the run's newest start\n# TYPE tokamak_events_total counter\n";
    for (const auto& [name, count] : events_) {
      out += str("tokamak_events_total{", labels_, ",event=\"", label_text(name), "\"} ", count, "\n");
    }
    return out;
  }

  std::string path_;
  std::string temporary_;  // its name is unique to this process
  std::string labels_;     // run="small",host="node7"
  struct Gauge {
    std::string help;
    double value = 0;
  };
  std::map<std::string, Gauge> gauges_;    // by name, without tokamak_
  std::map<std::string, int64_t> events_;  // counts in this start, by name
};

}  // namespace

std::unique_ptr<FileSink> prometheus_sink(const std::string& path, const RunFacts& run, const std::string& host) {
  return std::make_unique<PrometheusFile>(path, run, host);
}

}  // namespace tokamak
