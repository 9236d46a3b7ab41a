#include "cli/plan_report.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/machine_json.h"
#include "config/units.h"
#include "model/flops.h"

namespace tokamak::cli {

namespace {

constexpr double kHour = 3600;  // seconds
constexpr int kClusterSizes[] = {8, 64, 512, 2048, 8192, 16384};
constexpr size_t kMostRows = 12;
constexpr size_t kMostCandidates = 8;

const std::string& mode_of(const Prediction& p) {
  return enum_names(RecomputeMode{})[static_cast<size_t>(p.recompute)];
}

std::string gigabytes(double rate) { return fixed(rate / 1e9, 0) + " GB/s"; }

std::string column(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// Layers whose whole weights stay gathered.
std::string gathered_of(const Prediction& p) {
  if (p.parallelism.zero_stage < 3) return "all";
  return print_auto_limit(p.parallelism.keep_gathered);
}

std::string counts_of(const KeptLayers& kept) {
  std::vector<std::string> counts;
  for (const int64_t layers : kept.values) counts.push_back(str(layers));
  return join(counts, ", ");
}

void print_candidate(std::ostream& out, const Candidate& one, const char* note) {
  out << column(str(one.choice.micro_batch), 24) << column(str(one.choice.keep_gathered), 10)
      << column(counts_of(one.prediction.kept), 20) << column(fixed(one.choice.predicted_seconds, 4), 11)
      << column(human_bytes(one.prediction.peak_bytes_per_rank), 12) << note << "\n";
}

void print_choice(std::ostream& out, const Prediction& p, const char* note) {
  out << column(std::to_string(p.parallelism.zero_stage), 7)
      << column(std::to_string(p.parallelism.data_parallel_replicate_degree), 8)
      << column(std::to_string(p.shape.micro_batch), 13) << column(mode_of(p), 11) << column(gathered_of(p), 10)
      << column(fixed(p.step_seconds, 3), 10) << column(fixed(p.exposed_communication_seconds, 3), 10)
      << column(fixed(p.tokens_per_second_per_gpu, 1), 12) << column(fixed(100 * p.mfu_full, 1), 7)
      << column(human_bytes(p.peak_bytes_per_rank), 12) << note << "\n";
}

void print_terms(std::ostream& out, const PlanReport& report) {
  const Prediction& p = report.best();
  const Machine& m = report.machine;
  const Efficiency& e = m.efficiency;
  const double busy = p.terms.gemm + p.terms.attention + p.terms.memory;
  if (!m.measured.empty()) out << "rates        calls that were measured take what they took, not the shares below\n";
  out << "why          each term as if it ran alone, in seconds of a step:\n"
      << "             GEMMs             " << fixed(p.terms.gemm, 3) << "  at " << fixed(100 * e.gemm, 1) << " % of "
      << human_count(m.bf16_flops) << "FLOP/s, and their bytes\n"
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
  out << (report.machine.cpu ? " and the program itself\n"
                             : " and what CUDA and NCCL take; a snapshot is pinned host memory\n");
  if (!report.choices.fitting.empty()) return;
  std::vector<std::string> larger;
  for (const GpuRow& row : gpu_rows()) {
    if (row.memory_mib << 20 >= p.peak_bytes_per_rank) larger.emplace_back(row.name);
  }
  out << "             nothing fits: the least is " << human_bytes(p.peak_bytes_per_rank) << "; "
      << (larger.empty() ? "no GPU of the table has that" : "GPUs that have it: " + join(larger, ", "))
      << "; shorter sequences or more ranks take less\n";
}

void print_run(std::ostream& out, const PlanReport& report) {
  const Prediction& p = report.best();
  const double seconds = p.step_seconds * static_cast<double>(p.shape.total_steps);
  out << "run          " << p.shape.total_steps << " steps in " << fixed(seconds / kHour, 1) << " hours, "
      << fixed(seconds / kHour * report.ranks, 0) << " GPU hours";
  if (report.machine.watts > 0) {
    out << "; " << fixed(seconds / kHour * report.ranks * report.machine.watts / 1e6, 1)
        << " MWh of GPUs at their limit of " << fixed(report.machine.watts, 0) << " W";
  }
  const int64_t parameters = model_size(report.config.model).parameters;
  const bool async = report.config.checkpoint.async;
  const Reliability own = reliability_of(parameters, report.ranks, report.machine.gpus_per_node, async);
  const ReliabilityAssumptions assumed;
  out << "\ncheckpoints  " << human_bytes(own.checkpoint_bytes) << ", on disk after " << fixed(own.write_seconds, 1)
      << " s, a step waits " << fixed(own.stall_seconds, 2) << " s"
      << (async ? " for the copy to host memory" : " for the disk") << "\n"
      << "failures     one in " << fixed(own.mttf_seconds / kHour, 1) << " hours on " << report.ranks
      << " GPUs; best interval " << fixed(own.best_interval_seconds / 60, 1)
      << " min (Young, Daly); expected ETTR by number of GPUs:";
  for (const int gpus : kClusterSizes) {
    out << (gpus == kClusterSizes[0] ? " " : ", ") << gpus << ": "
        << fixed(100 * reliability_of(parameters, gpus, report.machine.gpus_per_node, async).ettr, 2) << " %";
  }
  out << "\n             assumed: a failure in " << fixed(assumed.gpu_seconds_per_failure / kHour, 0)
      << " GPU hours (Llama 3, arXiv 2407.21783), " << fixed(assumed.restart_seconds / 60, 0) << " min to restart, "
      << gigabytes(assumed.copy_rate) << " to host memory, " << gigabytes(assumed.storage_rate_per_node)
      << " of a node to storage\n";
}

nlohmann::ordered_json choice_json(const Prediction& p) {
  nlohmann::ordered_json memory = nlohmann::ordered_json::object();
  for (const MemoryPlan::Group& group : p.memory) memory[group.name] = group.bytes;
  return {{"micro_batch", p.shape.micro_batch},
          {"micro_batches", p.shape.micro_batches()},
          {"activation_checkpoint", mode_of(p)},
          {"kept_layers", p.kept.values},
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

void explain(std::ostream& out, const RunConfig& config, const Candidates& all) {
  const bool limited = all.bytes < INT64_MAX;
  if (all.fitting.empty()) {
    out << "chosen       the least there is: nothing fits into " << human_bytes(all.bytes) << "\n";
    return;
  }
  const Candidate& best = all.fitting[0];
  out << "chosen       " << text_of(config, best.choice) << ": of " << all.fitting.size() << " choices that fit"
      << (limited ? str(" into ", human_bytes(all.bytes)) : "") << " the shortest predicted step\n"
      << "             micro-batch  gathered  qkv, att, mid, gate   s / step  bytes/rank\n";
  std::set<int64_t> seen;
  for (size_t i = 0; i < all.fitting.size(); ++i) {
    const bool first = seen.insert(all.fitting[i].choice.micro_batch).second;
    if (i < kMostCandidates || first) print_candidate(out, all.fitting[i], i == 0 ? "  <- chosen" : "");
  }
  for (const KeepValues& values : all.values) {
    if (values.micro_batch != best.choice.micro_batch) continue;
    for (const KeptTensor tensor : kKeptTensors) {
      const KeepCost& cost = values.costs[tensor];
      out << "             keeping " << name_of(tensor) << " of a layer saves " << significant(1e3 * cost.spared, 3)
          << " ms a step for " << human_bytes(cost.bytes) << "\n";
    }
  }
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
      << gigabytes(m.network_rate) << " of a node to others; predictions:\n"
      << "  stage  copies  micro-batch  recompute  gathered  s / step  exposed s  tokens/s/GPU  MFU %  bytes/rank\n";
  for (size_t i = 0; i < report.choices.fitting.size() && i < kMostRows; ++i) {
    print_choice(out, report.choices.fitting[i], i == 0 && !report.as_configured ? "  <- recommended" : "");
  }
  for (const Prediction& p : report.choices.others) {
    print_choice(out, p, str("  does not fit into ", human_bytes(p.available_bytes)).c_str());
  }
  print_memory(out, report);
  if (report.explain) print_terms(out, report);
  if (report.explain && leaves_choice(report.config)) explain(out, report.config, report.candidates);
  print_run(out, report);
  if (!report.as_configured && !report.choices.fitting.empty()) out << "\n" << yaml_of(report.best());
}

nlohmann::ordered_json as_json(const PlanReport& report) {
  const Prediction& best = report.best();
  nlohmann::ordered_json choices = nlohmann::ordered_json::array();
  for (const Prediction& p : report.choices.fitting) choices.push_back(choice_json(p));
  for (const Prediction& p : report.choices.others) choices.push_back(choice_json(p));
  const int64_t parameters = model_size(report.config.model).parameters;
  const Reliability r =
      reliability_of(parameters, report.ranks, report.machine.gpus_per_node, report.config.checkpoint.async);
  const double seconds = best.step_seconds * static_cast<double>(best.shape.total_steps);
  nlohmann::ordered_json ettr = nlohmann::ordered_json::object();
  for (const int gpus : kClusterSizes) {
    ettr[std::to_string(gpus)] =
        reliability_of(parameters, gpus, report.machine.gpus_per_node, report.config.checkpoint.async).ettr;
  }
  return {{"machine", machine_json(report.machine)},
          {"choices", choices},
          {"recommended", report.choices.fitting.empty() ? "" : yaml_of(best)},
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
