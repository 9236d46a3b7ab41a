// Runs as one HTML page that needs no network and no other file. Its parts are in page/; dygraphs draws the charts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/curves.h"
#include "report/run_report.h"
#include "report/tensor_map.h"

namespace tokamak {

// A key of the run's resolved config.
struct ConfigEntry {
  std::string key;       // "optimizer.lr", "data.sources[0].path"
  std::string value;     // as in the run's config.yaml
  std::string standard;  // this program's default, or "required"; "" for an unknown key
};

struct PageEvent {
  int64_t start = 0;  // the start's number, from 0
  MetricRecord record;
};

struct Series {
  std::string name;     // "loss/avg"
  int64_t records = 0;  // before downsampling
  std::vector<CurvePoint> points;
};

// The parts of the page that show one run.
struct PageRun {
  std::string name;        // labels curves and columns
  int64_t parameters = 0;  // of the model; 0: not known
  RunReport report;
  std::vector<Series> series;
  std::vector<PageEvent> events;  // the newest ones, without "ready" and "checkpoint", in file order
  int64_t events_left_out = 0;
  std::vector<MetricRecord> samples;  // the newest ones, steps ascending
  int64_t samples_left_out = 0;
  int64_t memory_planned = 0;  // bytes, at the last start; 0: not known
  std::string device;          // of rank 0, at the last start
  TensorMap tensors;
  std::vector<ConfigEntry> config;
};

struct PageLimits {
  int64_t points = 2000;  // of a curve
  int64_t cells = 50000;  // of the map of tensors, which always has a few columns
};

// Reads a run.output_dir, without its config. Takes `holds_lock` and throws errors as read_report does.
PageRun read_page_run(const std::string& directory, const PageLimits& limits, std::optional<bool> holds_lock = {});

// `runs`: at least one, with different names. `program`: "tokamak 0.1.0".
std::string page_of(const std::vector<PageRun>& runs, const std::string& program);

// Text with its marks as entities: & < > ".
std::string html_escaped(std::string_view text);

// The page's data, as JSON that is safe in a <script>.
std::string page_data(const std::vector<PageRun>& runs, const std::string& program);

}  // namespace tokamak
