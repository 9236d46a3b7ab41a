#include "cli/plan_report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "config/units.h"
#include "model/flops.h"
#include "model/parameters.h"
#include "optim/optimizer.h"

namespace tokamak::cli {

namespace {

constexpr double kHour = 3600;  // seconds
constexpr int kClusterSizes[] = {8, 64, 512, 2048, 8192, 16384};
constexpr size_t kMostRows = 12;
constexpr size_t kMostCandidates = 8;
constexpr int kDigits = 3;  // significant digits of a prediction

const std::string& mode_of(const Prediction& p) { return enum_name(p.recompute); }

std::string gigabytes(double rate) { return fixed(rate / 1e9, 0) + " GB/s"; }

std::string column(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// Prints a value with `digits` significant digits, and no exponent: 9752.1, 3 -> "9750"; 0.01584, 2 -> "0.016".
std::string rounded(double value, int digits) {
  if (!(std::abs(value) > 0)) return "0";
  const int places = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, places);
  return fixed(std::round(value * scale) / scale, std::max(0, places));
}

// Prints the number of layers whose whole weights stay gathered.
std::string gathered_of(const Prediction& p) {
  if (p.parallelism.zero_stage < 3) return "all";
  return print_auto_limit(p.parallelism.keep_gathered);
}

std::string kept_heading(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const KeptTensor& tensor : kept_tensors(model)) names.push_back(tensor.name);
  return "   kept_layers of " + join(names, ", ");
}

void print_candidate(std::ostream& out, const ModelConfig& model, const Candidate& one, const char* note) {
  std::vector<std::string> counts;
  for (const int64_t layers : counts_of(model, one.prediction.kept)) counts.push_back(str(layers));
  out << column(str(one.choice.micro_batch), 29) << column(str(one.choice.keep_gathered), 15)
      << column(join(counts, ", "), kept_heading(model).size())
      << column(rounded(one.choice.predicted_seconds, kDigits), 11)
      << column(human_bytes(one.prediction.peak_bytes_per_rank), 19) << note << "\n";
}

// A row of the table: settings with equal results.
struct ChoiceRow {
  std::string zero_stage, replicate_degree, micro_batch, keep_gathered;
  std::vector<std::string> modes;
  std::string numbers;  // as printed
  std::string others;   // keys with other values than their defaults: reduce, unit

  bool same_but_modes(const ChoiceRow& other) const {
    return zero_stage == other.zero_stage && keep_gathered == other.keep_gathered && same_result(other);
  }
  // True if settings differ only in sharding and gathering: one row is enough.
  bool same_result(const ChoiceRow& other) const {
    return replicate_degree == other.replicate_degree && micro_batch == other.micro_batch && numbers == other.numbers &&
           others == other.others;
  }
};

ChoiceRow row_of(const Prediction& p) {
  const std::string numbers =
      column(rounded(p.step_seconds, kDigits), 10) + column(rounded(p.exposed_communication_seconds, 2), 9) +
      column(rounded(p.tokens_per_second_per_gpu, kDigits), 10) + column(fixed(100 * p.mfu_full, 1), 7) +
      column(human_bytes(p.peak_bytes_per_rank), 11) + column(p.free_bytes > 0 ? human_bytes(p.free_bytes) : "-", 11);
  return {.zero_stage = str(p.parallelism.zero_stage),
          .replicate_degree = str(p.parallelism.data_parallel_replicate_degree),
          .micro_batch = str(p.shape.micro_batch),
          .keep_gathered = gathered_of(p),
          .modes = {mode_of(p)},
          .numbers = numbers,
          .others = str(p.parallelism.reduce == ReduceWhen::kLastMicrobatch ? "  reduce: last_microbatch" : "",
                        p.parallelism.unit == UnitSize::kProjection ? "  unit: projection" : "")};
}

// Merges rows with the results of an earlier one.
std::vector<ChoiceRow> merged_rows(const std::vector<Prediction>& predictions) {
  std::vector<ChoiceRow> rows;
  for (const Prediction& p : predictions) {
    const ChoiceRow own = row_of(p);
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const ChoiceRow& r) { return r.same_result(own); });
    if (same == rows.end()) {
      rows.push_back(own);
    } else if (same->same_but_modes(own)) {
      same->modes.push_back(own.modes.front());
    }
  }
  return rows;
}

void print_row(std::ostream& out, const ChoiceRow& row, const std::string& note) {
  out << column(row.zero_stage, 7) << column(row.replicate_degree, 18) << column(row.micro_batch, 12)
      << column(row.keep_gathered, 10) << "  " << padded(join(row.modes, ", "), 21) << row.numbers << row.others << note
      << "\n";
}

void print_terms(std::ostream& out, const PlanReport& report) {
  const Prediction& p = report.best();
  const Machine& m = report.machine;
  const Efficiency& e = m.efficiency;
  const double busy = p.terms.gemm + p.terms.attention + p.terms.memory;
  if (!m.measured.empty()) out << "rates        measured calls take their measured time, not the shares below\n";
  out << "why          each term as if it ran alone, in seconds of a step:\n"
      << "             GEMMs             " << fixed(p.terms.gemm, 3) << "  at " << fixed(100 * e.gemm, 1) << " % of "
      << human_si(m.bf16_flops, "FLOP/s") << ", and their bytes\n"
      << "             attention         " << fixed(p.terms.attention, 3) << "  at " << fixed(100 * e.attention, 1)
      << " % of the same, up to the diagonal\n"
      << "             other operations  " << fixed(p.terms.memory, 3) << "  at " << fixed(100 * e.memory, 1)
      << " % of " << gigabytes(m.memory_rate) << "\n"
      << "             collectives       " << fixed(p.terms.collectives, 3) << "  at "
      << gigabytes(bus_rate(m, report.ranks)) << ", of which " << fixed(p.exposed_communication_seconds, 3)
      << " are not hidden\n"
      << "             contention        "
      << fixed(std::max(0.0, p.step_seconds - busy - p.exposed_communication_seconds), 3) << "  while collectives take "
      << fixed(100 * e.contention, 0) << " % of the device, and keep " << fixed(100 * e.beside, 0)
      << " % of their rate\n"
      << "             hardware          " << m.source << "\n";
}

void print_memory(std::ostream& out, const PlanReport& report) {
  const Prediction& p = report.best();
  out << "memory      ";
  for (const MemoryPlan::Group& group : p.memory) {
    if (group.bytes >= p.peak_bytes_per_rank / 1000) out << " " << group.name << " " << human_bytes(group.bytes) << ",";
  }
  if (report.machine.cpu) {
    out << " and the program itself\n";
  } else {
    const int64_t ranks = report.ranks_per_node();
    out << " and what CUDA and NCCL take\n"
        << "host memory  holds the snapshot that checkpoints are written from: " << human_bytes(p.pinned_bytes_per_rank)
        << " pinned for each rank, " << human_bytes(ranks * p.pinned_bytes_per_rank) << " on a node of " << ranks
        << "\n";
  }
  out << "free         " << human_bytes(std::max<int64_t>(p.free_bytes, 0)) << " of "
      << human_bytes(report.machine.memory_bytes) << " on each rank";
  if (report.machine.free_share > 0) {
    out << "; plans leave " << fixed(100 * report.machine.free_share, 0)
        << " %, since the driver and other programs take some of it";
  }
  out << "\n";
  if (!report.choices.fitting.empty()) return;
  std::vector<std::string> larger;
  for (const GpuRow& row : gpu_rows()) {
    if (find_machine(row.name).plannable_bytes() >= p.peak_bytes_per_rank) larger.emplace_back(row.name);
  }
  out << "             nothing fits: the least is " << human_bytes(p.peak_bytes_per_rank) << "; "
      << (larger.empty() ? "no GPU of the table has that" : "GPUs that have it: " + join(larger, ", "))
      << "; shorter sequences or more ranks take less\n";
}

Reliability reliability_on(const PlanReport& report, int gpus) {
  const RunConfig& config = report.config;
  const int64_t saved = saved_bytes(config.optimizer, make_param_table(config.model), std::ssize(config.averages));
  return reliability_of(saved, gpus, report.machine.gpus_per_node, config.checkpoint.async);
}

void print_run(std::ostream& out, const PlanReport& report) {
  const Prediction& p = report.best();
  const double seconds = p.step_seconds * double(p.shape.total_steps);
  out << "run          " << p.shape.total_steps << " steps in " << rounded(seconds / kHour, kDigits) << " hours, "
      << rounded(seconds / kHour * report.ranks, kDigits) << " GPU hours at the predicted step time";
  if (report.machine.watts > 0) {
    out << "; " << rounded(seconds / kHour * report.ranks * report.machine.watts / 1e6, kDigits)
        << " MWh of GPUs at their limit of " << fixed(report.machine.watts, 0) << " W";
  }
  const Reliability own = reliability_on(report, report.ranks);
  const ReliabilityAssumptions assumed;
  out << "\ncheckpoints  " << human_bytes(own.checkpoint_bytes) << ", on disk after " << fixed(own.write_seconds, 1)
      << " s, a step waits " << fixed(own.stall_seconds, 2) << " s"
      << (report.config.checkpoint.async ? " for the copy to host memory" : " for the disk") << "\n"
      << "failures     one in " << fixed(own.mttf_seconds / kHour, 1) << " hours on " << report.ranks
      << " GPUs; best interval " << fixed(own.best_interval_seconds / 60, 1)
      << " min (Young, Daly); expected ETTR by number of GPUs:";
  for (const int gpus : kClusterSizes) {
    out << (gpus == kClusterSizes[0] ? " " : ", ") << gpus << ": " << fixed(100 * reliability_on(report, gpus).ettr, 2)
        << " %";
  }
  out << "\n             assumed: a failure in " << fixed(assumed.gpu_seconds_per_failure / kHour, 0)
      << " GPU hours (Llama 3, arXiv 2407.21783), " << fixed(assumed.restart_seconds / 60, 0) << " min to restart, "
      << gigabytes(assumed.copy_rate) << " to host memory, " << gigabytes(assumed.storage_rate_per_node)
      << " of a node to storage\n";
}

nlohmann::ordered_json choice_json(const ModelConfig& model, const Prediction& p) {
  nlohmann::ordered_json memory = nlohmann::ordered_json::object();
  for (const MemoryPlan::Group& group : p.memory) memory[group.name] = group.bytes;
  return {{"micro_batch", p.shape.micro_batch},
          {"micro_batches", p.shape.micro_batches()},
          {"activation_checkpoint", mode_of(p)},
          {"kept_layers", counts_of(model, p.kept)},
          {"reduce", enum_name(p.parallelism.reduce)},
          {"unit", enum_name(p.parallelism.unit)},
          {"keep_gathered", std::max<int64_t>(p.parallelism.keep_gathered.value, 0)},
          {"zero_stage", p.parallelism.zero_stage},
          {"data_parallel_replicate_degree", p.parallelism.data_parallel_replicate_degree},
          {"fits", p.fits()},
          {"step_seconds", p.step_seconds},
          {"tokens_per_second_per_gpu", p.tokens_per_second_per_gpu},
          {"mfu_full", p.mfu_full},
          {"mfu_causal", p.mfu_causal},
          {"exposed_communication_seconds", p.exposed_communication_seconds},
          {"peak_bytes_per_rank", p.peak_bytes_per_rank},
          {"free_bytes_per_rank", p.free_bytes},
          {"pinned_bytes_per_rank", p.pinned_bytes_per_rank},
          {"memory", memory},
          {"terms",
           {{"gemm_seconds", p.terms.gemm},
            {"attention_seconds", p.terms.attention},
            {"other_seconds", p.terms.memory},
            {"collective_seconds", p.terms.collectives}}},
          {"flops_per_rank", p.flops},
          {"exchanged_bytes_per_rank", p.exchanged}};
}

}  // namespace

void explain(std::ostream& out, const RunConfig& config, const Machine& machine, const Candidates& all) {
  const bool limited = all.bytes < INT64_MAX;
  if (all.fitting.empty()) {
    out << "chosen       the least there is: nothing fits into " << human_bytes(all.bytes) << "\n";
    return;
  }
  const Candidate& best = all.fitting[0];
  out << "chosen       " << text_of(config, best.choice) << ": of " << all.fitting.size() << " choices that fit"
      << (limited ? str(" into ", human_bytes(all.bytes)) : "") << " the shortest predicted step\n"
      << "predictions  " << accuracy_of(machine) << "\n"
      << "             micro_batch_size  keep_gathered" << kept_heading(config.model)
      << "    step, s     peak of a rank\n";
  std::set<int64_t> seen;
  for (size_t i = 0; i < all.fitting.size(); ++i) {
    const bool first = seen.insert(all.fitting[i].choice.micro_batch).second;
    if (i < kMostCandidates || first) print_candidate(out, config.model, all.fitting[i], i == 0 ? "  <- chosen" : "");
  }
  for (const KeepValues& values : all.values) {
    if (values.micro_batch != best.choice.micro_batch) continue;
    const std::vector<KeptTensor> tensors = kept_tensors(config.model);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const KeepCost& cost = values.costs[i];
      out << "             keeping " << tensors[i].name << " of a layer saves " << significant(1e3 * cost.spared, 3)
          << " ms a step for " << human_bytes(cost.bytes) << "\n";
    }
  }
}

int64_t PlanReport::raised_batch() const {
  const int64_t tokens = config.training.global_batch_tokens;
  return stated_batch > 0 && tokens != stated_batch ? tokens : 0;
}

const Prediction& PlanReport::best() const {
  if (!choices.fitting.empty()) return choices.fitting[0];
  return *std::min_element(choices.others.begin(), choices.others.end(), [](const Prediction& a, const Prediction& b) {
    return a.peak_bytes_per_rank < b.peak_bytes_per_rank;
  });
}

void print(std::ostream& out, const PlanReport& report) {
  const Machine& m = report.machine;
  out << "machine      " << report.ranks << " x " << m.name << ", " << m.gpus_per_node << " a node, "
      << gigabytes(m.network_rate) << " of a node to others\n";
  if (report.raised_batch() > 0) {
    out << "batch        training.global_batch_tokens " << report.raised_batch() << " instead of "
        << report.stated_batch << ", which " << report.ranks << " ranks cannot share equally\n";
  }
  out << "predictions  " << accuracy_of(m) << "\n"
      << "   zero_  data_parallel_     micro_     keep_  activation_              step,  exposed,   tokens/s"
         "            peak of    free of\n"
      << "   stage replicate_degree batch_size  gathered  checkpoint.mode              s         s      / GPU"
         "  MFU %     a rank     a rank\n";
  const std::vector<ChoiceRow> rows = merged_rows(report.choices.fitting);
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) {
    print_row(out, rows[i], i == 0 && !report.as_configured ? "  <- recommended" : "");
  }
  for (const Prediction& p : report.choices.others) {
    print_row(out, row_of(p), "  does not fit into " + human_bytes(p.available_bytes));
  }
  out << "exposed      seconds of a step in which ranks communicate and compute nothing\n";
  print_memory(out, report);
  if (report.explain) print_terms(out, report);
  if (report.explain && leaves_choice(report.config)) explain(out, report.config, report.machine, report.candidates);
  print_run(out, report);
  if (!report.as_configured && !report.choices.fitting.empty())
    out << "\n" << yaml_of(report.best(), report.raised_batch());
}

nlohmann::ordered_json machine_json(const Machine& m) {
  const Efficiency& e = m.efficiency;
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  for (const MeasuredOp& op : m.measured) {
    measured.push_back({{"name", op.name},
                        {"m", op.m},
                        {"n", op.n},
                        {"k", op.k},
                        {"flops", op.flops},
                        {"bytes", op.bytes},
                        {"seconds", op.seconds}});
  }
  return {{"name", m.name},
          {"bf16_flops", m.bf16_flops},
          {"f32_flops", m.f32_flops},
          {"memory_bytes", m.memory_bytes},
          {"memory_rate", m.memory_rate},
          {"link_rate", m.link_rate},
          {"network_rate", m.network_rate},
          {"gpus_per_node", m.gpus_per_node},
          {"watts", m.watts},
          {"launch_seconds", m.launch_seconds},
          {"hop_seconds", m.hop_seconds},
          {"efficiency",
           {{"gemm", e.gemm},
            {"attention", e.attention},
            {"native_attention", e.native_attention},
            {"memory", e.memory},
            {"bus", e.bus},
            {"contention", e.contention},
            {"beside", e.beside}}},
          {"cpu", m.cpu},
          {"measured", measured},
          {"source", m.source}};
}

nlohmann::ordered_json as_json(const PlanReport& report) {
  const Prediction& best = report.best();
  nlohmann::ordered_json choices = nlohmann::ordered_json::array();
  for (const Prediction& p : report.choices.fitting) choices.push_back(choice_json(report.config.model, p));
  for (const Prediction& p : report.choices.others) choices.push_back(choice_json(report.config.model, p));
  const Reliability r = reliability_on(report, report.ranks);
  const double seconds = best.step_seconds * double(best.shape.total_steps);
  nlohmann::ordered_json ettr = nlohmann::ordered_json::object();
  for (const int gpus : kClusterSizes) ettr[std::to_string(gpus)] = reliability_on(report, gpus).ettr;
  const PredictionError& error = kPublishedError;
  return {{"machine", machine_json(report.machine)},
          {"published_error", {{"median", error.median}, {"ninth_decile", error.ninth_decile}, {"rows", error.rows}}},
          {"choices", choices},
          {"recommended", report.choices.fitting.empty() ? "" : yaml_of(best, report.raised_batch())},
          {"run",
           {{"seconds", seconds},
            {"gpu_hours", seconds / kHour * report.ranks},
            {"kilowatt_hours", seconds / kHour * report.ranks * report.machine.watts / 1000}}},
          {"checkpoint",
           {{"bytes", r.checkpoint_bytes},
            {"stall_seconds", r.stall_seconds},
            {"write_seconds", r.write_seconds},
            {"mttf_seconds", r.mttf_seconds},
            {"best_interval_seconds", r.best_interval_seconds},
            {"ettr", r.ettr},
            {"ettr_by_gpus", ettr}}}};
}

}  // namespace tokamak::cli
