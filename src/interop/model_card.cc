#include "interop/model_card.h"

#include <cmath>
#include <sstream>

#include "base/strings.h"
#include "config/print.h"
#include "model/flops.h"
#include "monitor/history.h"

namespace tokamak {

namespace {

std::string count_text(int64_t value) { return str(value, " (", human_count(double(value)), ")"); }

std::string sources_text(const std::vector<SourceOptions>& sources) {
  std::vector<std::string> words;
  for (const SourceOptions& source : sources) {
    words.push_back(str("`", source.path, "`", sources.size() > 1 ? str(" (weight ", source.weight, ")") : ""));
  }
  return join(words, ", ");
}

void row(std::ostream& out, const std::string& name, const std::string& value) {
  out << "| " << name << " | " << value << " |\n";
}

}  // namespace

RunRecord read_run_record(const std::string& metrics_path, int64_t step, const std::string& average) {
  RunRecord last{.average = average};
  const std::string validation = "validation/loss" + (average.empty() ? "" : "_" + average);
  for (const MetricRecord& record : read_history(metrics_path)) {
    if (record.step > step) break;
    if (average.empty() && record.has("loss/avg")) last.loss = record.at("loss/avg");
    if (record.has(validation)) last.validation_loss = record.at(validation);
  }
  return last;
}

std::string render_model_card(const CheckpointManifest& manifest, const RunConfig& config, WeightType type,
                              const RunRecord& record) {
  const TrainingPoint& point = manifest.point;
  std::ostringstream out;
  out << "---\nlibrary_name: transformers\npipeline_tag: text-generation\n---\n\n"
      << "# " << config.run.name << "\n\n"
      << "A language model pretrained with Tokamak " << manifest.tool << ", exported from the checkpoint of step "
      << point.state.step << ".\n\n"
      << "| | |\n|---|---|\n";
  row(out, "parameters", count_text(model_size(config.model).parameters));
  row(out, "weights", format_of(type).name + (record.average.empty() ? "" : ", the average `" + record.average + "`"));
  row(out, "context",
      str(config.model.max_position_embeddings, " tokens, trained on sequences of ", config.data.sequence_length));
  row(out, "optimizer steps", str(point.state.step));
  row(out, "tokens", count_text(point.state.tokens));
  row(out, "data", sources_text(config.data.sources));
  if (record.loss) row(out, "training loss", fixed(*record.loss, 4));
  if (record.validation_loss) {
    row(out, "validation loss",
        str(fixed(*record.validation_loss, 4), " (perplexity ", fixed(std::exp(*record.validation_loss), 2), ")"));
  }
  row(out, "checkpoint written", manifest.created);
  out << "\n```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
      << "model = AutoModelForCausalLM.from_pretrained(\"PATH\")\n"
      << "tokenizer = AutoTokenizer.from_pretrained(\"PATH\")\n```\n\n"
      << "The tokenizer reads `<s>` and `</s>` in a text as text, as the tokenizer of the training did; give their "
         "ids, "
         "or\n`split_special_tokens=False`, where the tokens are meant.\n\n"
      << "## The run's config\n\n```yaml\n"
      << print_config(config) << "```\n";
  return out.str();
}

}  // namespace tokamak
