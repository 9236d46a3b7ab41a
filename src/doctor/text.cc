// Checks text among the sources, which `train` tokenizes before the run: files, tokenizer, a sample of the text, and
// the space for the data sets.
#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "data/prepare/text_sources.h"
#include "data/stores/source.h"
#include "doctor/checks.h"

namespace tokamak::doctor {

std::vector<SourceOptions> take_out_text(RunConfig& config) {
  const std::string cache = text_cache(config.data, config.run.output_dir);
  std::vector<SourceOptions> taken;
  std::vector<std::vector<SourceOptions>*> lists = {&config.data.sources, &config.data.validation};
  for (StageOptions& stage : config.stages) lists.push_back(&stage.sources);
  for (std::vector<SourceOptions>* sources : lists) {
    std::vector<SourceOptions> kept;
    for (SourceOptions& source : *sources) {
      if (is_text_source(source)) {
        const TextSource text = find_text_source(source, cache);
        if (!text.is_made) {
          const auto same = [&](const SourceOptions& one) {
            return one.path == source.path && one.tokenizer == source.tokenizer;
          };
          if (std::none_of(taken.begin(), taken.end(), same)) taken.push_back(source);  // stages share sources
          continue;
        }
        source.path = text.data_set;
        source.format = SourceFormat::kTokamak;
      }
      kept.push_back(source);
    }
    *sources = std::move(kept);
  }
  if (taken.empty()) return taken;
  config.data.max_epochs = 0;
  for (std::vector<SourceOptions>* sources : lists) {
    for (SourceOptions& source : *sources) source.max_epochs = 0;
  }
  return taken;
}

void judge_text(CheckResult& result, Comm& comm, const RankHosts& peers, const RunConfig& config,
                const std::vector<SourceOptions>& text,
                const std::function<int64_t(const std::string& path)>& free_bytes_of) {
  const bool measured = measure(result, comm, peers, [&](Facts& facts) {
    if (comm.rank() != 0) return;
    const std::string cache = text_cache(config.data, config.run.output_dir);
    TextEstimate all;
    int64_t text_bytes = 0;
    for (const SourceOptions& source : text) {
      const TextSource found = find_text_source(source, cache);
      const TextEstimate one = estimate_data_set(source, found);
      text_bytes += found.bytes;
      all.tokens += one.tokens;
      all.bytes += one.bytes;
    }
    const std::string parent = nearest_parent(cache);
    facts.set("text_bytes", text_bytes);
    facts.set("estimated_tokens", all.tokens);
    facts.set("estimated_bytes", all.bytes);
    facts.set("cache_free_bytes", free_bytes_of ? free_bytes_of(parent) : free_bytes(parent, Kind::kData));
  });
  if (!measured) return;
  const Facts& lead = result.ranks.front();
  const auto bytes_of = [&](const char* fact) { return human_bytes(static_cast<int64_t>(lead.number(fact))); };
  result.value += str(result.value.empty() ? "" : "; besides, ", bytes_of("text_bytes"),
                      " of text, which train tokenizes before the run: about ",
                      human_count(lead.number("estimated_tokens")), " tokens, ", bytes_of("estimated_bytes"));
  if (lead.number("estimated_bytes") <= lead.number("cache_free_bytes")) return;
  result.fail("", str("the data sets of the text will take about ", bytes_of("estimated_bytes"), " in ",
                      text_cache(config.data, config.run.output_dir), ", where ", bytes_of("cache_free_bytes"),
                      " are free; data.cache names another directory"));
}

}  // namespace tokamak::doctor
