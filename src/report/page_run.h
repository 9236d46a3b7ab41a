// A run as its page shows it: the account of its time, its curves, its events, its config.
#pragma once

#include <string>
#include <vector>

#include "report/run_report.h"
#include "report/series.h"
#include "report/tensor_map.h"
#include "report/trace_summary.h"

namespace tokamak {

// A key of the run's resolved config.
struct ConfigEntry {
  std::string key;       // "optimizer.lr", "data.sources[0].path"
  std::string value;     // as the run's config.yaml prints it
  std::string standard;  // the default of this version of the program, or "required"; "" where a key has none
};

struct PageEvent {
  int64_t start = 0;  // of which start, from 0
  MetricRecord record;
};

struct PageRun {
  std::string name;        // by which curves and columns are labelled
  int64_t parameters = 0;  // of the model; 0: not known
  RunReport report;
  std::vector<Series> series;
  std::vector<PageEvent> events;      // but for those that the account of a start sums up; in the order of the file
  int64_t events_left_out = 0;        // older than those
  std::vector<MetricRecord> samples;  // with texts, of the run's course, steps ascending
  int64_t samples_left_out = 0;       // others, evenly between those
  int64_t memory_planned = 0;         // bytes, of the last start that said so; 0: none did
  int64_t memory_committed = 0;
  // Of one rank, of the last start that said so; 0 and "": none did.
  std::string device;
  double peak_flops = 0;   // per second: what MFU is against
  double memory_rate = 0;  // bytes per second, read and written
  TensorMap tensors;
  std::vector<TraceSummary> traces;
  std::vector<ConfigEntry> config;
};

// How much of a run its page has.
struct PageLimits {
  int64_t points = 2000;  // of a curve
  int64_t cells = 50000;  // of the map of tensors; a few columns are there whatever it has of rows
};

// Of a run.output_dir, without its config. `holds_lock` and errors as of read_report.
PageRun read_page_run(const std::string& directory, const PageLimits& limits, std::optional<bool> holds_lock = {});

}  // namespace tokamak
