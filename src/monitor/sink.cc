#include "monitor/sink.h"

#include "monitor/console.h"
#include "monitor/jsonl.h"

namespace tokamak {

Sinks make_sinks(const MetricsOptions& options, const std::string& output_dir, int64_t total_steps) {
  Sinks sinks;
  sinks.push_back(std::make_unique<Console>(total_steps));
  if (options.jsonl) sinks.push_back(std::make_unique<JsonlFile>(output_dir + "/metrics.jsonl"));
  return sinks;
}

}  // namespace tokamak
