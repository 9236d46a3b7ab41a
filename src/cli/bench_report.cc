#include "cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "base/strings.h"
#include "model/flops.h"

namespace tokamak::cli {

namespace {

constexpr int kNameWidth = 26;

std::ostream& row(std::ostream& out, const std::string& name) {
  return out << std::left << std::setw(kNameWidth) << name << std::right;
}

void print_gemms(std::ostream& out, const StepBenchmark& result) {
  out << "GEMMs of a step, each run alone\n";
  for (const auto& [gemm, rate] : result.gemms) {
    out << "  " << std::left << std::setw(18) << gemm.name << std::right << std::setw(5) << gemm.count << " x "
        << std::setw(6) << gemm.m() << " x " << std::setw(6) << gemm.n() << " x " << std::setw(6) << gemm.k()
        << std::setw(10) << fixed(rate / 1e9, 0) << " GFLOP/s\n";
  }
}

void print_profile(std::ostream& out, const Profile& profile) {
  out << "A step by operation (rank 0, profiled separately)\n";
  double total = 0;
  std::vector<std::pair<std::string, ProfileEntry>> rows(profile.begin(), profile.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  for (const auto& [name, entry] : rows) total += entry.seconds;
  for (const auto& [name, entry] : rows) {
    out << "  " << std::left << std::setw(24) << name << std::right << std::setw(6) << entry.calls << " calls"
        << std::setw(9) << fixed(entry.seconds, 3) << " s" << std::setw(8) << fixed(100 * entry.seconds / total, 1)
        << " %";
    if (entry.flops > 0) out << std::setw(10) << fixed(entry.flops / entry.seconds / 1e9, 0) << " GFLOP/s";
    out << "\n";
  }
}

struct Mfu {
  double full = 0;
  double causal = 0;
  double done = 0;  // counts the attention of the documents only
};

Mfu mfu_of(const StepReport& r) {
  const double rate = r.result.tokens_per_second / r.peak_flops;
  return {.full = rate * token_flops(r.config.model).full(r.shape.length),
          .causal = rate * token_flops(r.config.model).causal(r.shape.length),
          .done = rate * token_flops(r.config.model).done(r.result.attended)};
}

}  // namespace

void print(std::ostream& out, const StepReport& r) {
  const auto bytes = [](int64_t count) { return human_bytes(count); };
  const auto training = [&](const char* count, double flops_per_token) {
    const double rate = r.result.tokens_per_second * flops_per_token;
    row(out, str("training, ", count, " count"))
        << human_si(rate, "FLOP/s") << " = " << fixed(100 * rate / r.result.gemm_rate, 1) << " % of the GEMM rate\n";
  };
  row(out, "model") << human_count(static_cast<double>(model_size(r.config.model).parameters)) << " parameters, T "
                    << r.shape.length << ", " << enum_name(r.config.precision.compute) << "\n";
  row(out, "machine") << r.device << ", " << r.ranks << " rank(s)\n";
  row(out, "step") << r.result.tokens_per_step << " tokens: " << r.shape.micro_batches() << " micro-batch(es) of "
                   << r.shape.micro_batch << " sequences on each rank\n";
  row(out, "documents") << (r.mean_document == 0 ? "each sequence is one"
                                                 : str("random, of ", r.mean_document, " tokens on average"))
                        << "; a token attends to " << fixed(r.result.attended, 0) << "\n\n";
  print_gemms(out, r.result);
  out << "\n";
  print_profile(out, r.result.profile);
  out << "\n";
  row(out, "step time") << fixed(r.result.step_seconds, 3) << " s\n";
  row(out, "tokens/s") << fixed(r.result.tokens_per_second, 0) << "\n";
  row(out, "GEMM rate") << human_si(r.result.gemm_rate, "FLOP/s")
                        << " (FLOP-weighted over the GEMMs above, all ranks)\n";
  training("causal", token_flops(r.config.model).causal(r.shape.length));
  training("full", token_flops(r.config.model).full(r.shape.length));
  if (r.peak_flops > 0) {
    row(out, "mfu_full") << fixed(100 * mfu_of(r).full, 1) << " % of " << human_si(r.peak_flops, "FLOP/s")
                         << ", the vendor's dense peak\n";
    row(out, "mfu_causal") << fixed(100 * mfu_of(r).causal, 1) << " %\n";
    row(out, "mfu_done") << fixed(100 * mfu_of(r).done, 1) << " %, with the attention inside documents only\n";
  }
  row(out, "memory planned") << bytes(r.planned_bytes) << " (with " << bytes(r.baseline_bytes) << " used before)\n";
  row(out, "memory peak") << bytes(r.peak_bytes) << " (rank 0; includes the operands of the GEMMs run alone)\n";
}

nlohmann::ordered_json as_json(const StepReport& r) {
  nlohmann::ordered_json operations = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : r.result.profile) {
    operations[name] = {
        {"calls", entry.calls}, {"seconds", entry.seconds}, {"flops", entry.flops}, {"bytes", entry.bytes}};
  }
  nlohmann::ordered_json json = {{"device", r.device},
                                 {"ranks", r.ranks},
                                 {"parameters", model_size(r.config.model).parameters},
                                 {"layers", r.config.model.num_hidden_layers},
                                 {"sequence_length", r.shape.length},
                                 {"compute", enum_name(r.config.precision.compute)},
                                 {"tokens_per_step", r.result.tokens_per_step},
                                 {"step_seconds", r.result.step_seconds},
                                 {"tokens_per_second", r.result.tokens_per_second},
                                 {"flops_per_token_full", token_flops(r.config.model).full(r.shape.length)},
                                 {"flops_per_token_causal", token_flops(r.config.model).causal(r.shape.length)},
                                 {"gemm_flops_per_second", r.result.gemm_rate},
                                 {"mean_document", r.mean_document},
                                 {"attended", r.result.attended},
                                 {"memory_baseline_bytes", r.baseline_bytes},
                                 {"memory_planned_bytes", r.planned_bytes},
                                 {"memory_peak_bytes", r.peak_bytes},
                                 {"operations", operations}};
  if (r.peak_flops > 0) {
    json.update({{"peak_flops_per_second", r.peak_flops},
                 {"mfu_full", mfu_of(r).full},
                 {"mfu_causal", mfu_of(r).causal},
                 {"mfu_done", mfu_of(r).done}});
  }
  return json;
}

void print(std::ostream& out, const CoordinateCheck& check) {
  constexpr int kWidth = 9;
  const size_t last = check.by_width.at(0).of_step.size() - 1;
  out << "Slope of log RMS over log size; growth: the largest from step " << kFirstCheckedStep << " on, at most "
      << kLargestGrowth << "; at least " << -kLargestFall << " at step " << last << "\n";
  for (const auto& [size, rows] : {std::pair{"hidden_size", &check.by_width}, {"num_hidden_layers", &check.by_depth}}) {
    if (rows->empty()) {
      row(out, size) << "   not checked: model.mup.base_num_hidden_layers is 0\n";
      continue;
    }
    row(out, size) << "   step 0        1        4" << std::setw(kWidth) << last << "   growth\n";
    for (const CoordinateSlopes& one : *rows) {
      row(out, "  " + one.value);
      for (const size_t step : {size_t{0}, size_t{1}, size_t{4}, last}) {
        const double slope = one.of_step.at(step);
        out << std::setw(kWidth) << (std::isfinite(slope) ? fixed(slope, 3) : "-");
      }
      out << std::setw(kWidth) << fixed(one.growth(), 3) << (one.passes() ? "\n" : "  fails\n");
    }
  }
  out << "Attention's logits are not observed: no operation writes them.\n";
}

nlohmann::ordered_json as_json(const CoordinateCheck& check) {
  nlohmann::ordered_json json = {{"failures", check.failures()}};
  for (const CoordinateSlopes& one : check.by_width) json["hidden_size"][one.value] = one.of_step;
  for (const CoordinateSlopes& one : check.by_depth) json["num_hidden_layers"][one.value] = one.of_step;
  return json;
}

void print(std::ostream& out, const GenerateTimes& t) {
  const auto percent = [](double share) { return fixed(100 * share, 0) + " %"; };
  row(out, "generation") << t.options.sequences << " sequence(s) of " << t.options.prompt << " tokens, "
                         << t.options.tokens << " decoded; the median of " << t.options.rounds << " rounds\n\n";
  row(out, "copy") << human_si(t.copy_rate, "B/s") << " copied, so " << human_si(2 * t.copy_rate, "B/s")
                   << " read and written\n";
  row(out, "decoding") << fixed(t.decode_rate(), 1) << " tokens/s, " << fixed(1e3 * t.decode_seconds, 2)
                       << " ms a call that reads " << human_bytes(t.weight_bytes) << " of weights\n";
  row(out, "weights read") << human_si(t.weight_bytes / t.decode_seconds, "B/s") << " = " << percent(t.share_of_copy())
                           << " of the bytes copied, " << percent(t.share_of_traffic())
                           << " of those read and written\n";
  if (t.reads_cache()) {
    row(out, "") << "faster than memory: a cache holds this model, and a larger one will be slower\n";
  }
  row(out, "prompts") << fixed(t.prompt_rate, 0) << " tokens/s; their GEMMs alone " << fixed(t.prompt_gemm_rate, 0)
                      << ": " << percent(t.prompt_rate / t.prompt_gemm_rate) << "\n";
}

nlohmann::ordered_json as_json(const GenerateTimes& t) {
  return {{"sequences", t.options.sequences},
          {"prompt_tokens", t.options.prompt},
          {"decoded_tokens", t.options.tokens},
          {"rounds", t.options.rounds},
          {"copied_bytes_per_second", t.copy_rate},
          {"weight_bytes_per_call", t.weight_bytes},
          {"weights_from_cache", t.reads_cache()},
          {"decode_tokens_per_second", t.decode_rate()},
          {"decode_share_of_copied", t.share_of_copy()},
          {"decode_share_of_read_and_written", t.share_of_traffic()},
          {"prompt_tokens_per_second", t.prompt_rate},
          {"prompt_gemms_tokens_per_second", t.prompt_gemm_rate}};
}

void print(std::ostream& out, const OpTimes& times) {
  row(out, "copy") << human_si(times.copy_rate, "B/s") << " read and written\n";
  row(out, "reference GEMM") << human_si(times.gemm_rate, "FLOP/s") << "\n\n";
  row(out, "operation") << std::setw(12) << "ms" << std::setw(10) << "GB/s" << std::setw(10) << "of copy"
                        << std::setw(10) << "TFLOP/s" << std::setw(12) << "of GEMM"
                        << "\n";
  for (const OpTime& op : times.ops) {
    row(out, op.name) << std::setw(12) << fixed(1e3 * op.seconds, 3) << std::setw(10)
                      << fixed(op.bytes / op.seconds / 1e9, 0) << std::setw(9)
                      << fixed(100 * op.bytes / op.seconds / times.copy_rate, 0) << "%";
    if (op.flops > 0) {
      out << std::setw(10) << fixed(op.flops / op.seconds / 1e12, 2) << std::setw(11)
          << fixed(100 * op.flops / op.seconds / times.gemm_rate, 0) << "%";
    }
    out << "\n";
  }
}

nlohmann::ordered_json as_json(const OpTimes& times) {
  nlohmann::ordered_json operations = nlohmann::ordered_json::object();
  for (const OpTime& op : times.ops) {
    operations[op.name] = {{"seconds", op.seconds},
                           {"bytes", op.bytes},
                           {"flops", op.flops},
                           {"of_copy", op.bytes / op.seconds / times.copy_rate},
                           {"of_gemm", op.flops / op.seconds / times.gemm_rate}};
  }
  return {{"copy_bytes_per_second", times.copy_rate},
          {"gemm_flops_per_second", times.gemm_rate},
          {"attention_shape",
           {{"documents", times.documents},
            {"length", times.length},
            {"attended", times.attended},
            {"q_heads", times.heads.q_heads},
            {"kv_heads", times.heads.kv_heads},
            {"head_dim", times.heads.head_dim}}},
          {"operations", operations}};
}

}  // namespace tokamak::cli
