#include "train/start_event.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "base/strings.h"

namespace tokamak {

MetricRecord start_record(const StartFacts& facts, const std::function<const char*(const char* name)>& variable) {
  RunEvent event{"start",
                 str(facts.ranks, " rank(s)"),
                 {{"exec", utc_text(facts.exec_time)},
                  {"incarnation", facts.incarnation},
                  {"hosts", facts.hosts},
                  {"program", facts.program},
                  {"command", facts.command},
                  {"system", system_name()}}};
  std::vector<NamedValue> values = {count_value("ranks", facts.ranks)};
  const auto add_text = [&](const char* key, const char* name) {
    const char* text = variable(name);
    if (text != nullptr && *text != '\0') event.texts.push_back({key, text});
  };
  const auto add_count = [&](const char* key, const char* name) {
    const char* text = variable(name);
    int64_t count = 0;
    if (text != nullptr && std::from_chars(text, text + std::strlen(text), count).ec == std::errc()) {
      values.push_back(count_value(key, count));
    }
  };
  add_text("job", "TOKAMAK_JOB");
  add_text("slurm_job", "SLURM_JOB_ID");
  add_count("attempt", "TOKAMAK_ATTEMPT");
  add_count("slurm_restarts", "SLURM_RESTART_COUNT");
  return {.step = 0, .event = std::move(event), .values = std::move(values)};
}

std::string all_hosts(Comm& comm) {
  std::vector<std::string> hosts;
  for (std::string& host : comm.gather_all(host_name())) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(std::move(host));
  }
  return join(hosts, ",");
}

}  // namespace tokamak
