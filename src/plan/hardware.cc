#include "plan/hardware.h"

#include <algorithm>
#include <cstdlib>

#include "backend/peak_flops.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "formats/json.h"

namespace tokamak {

namespace {

constexpr double kGB = 1e9;  // bytes
// These two hold for every GPU; neither is fitted.
constexpr double kKernelSeconds = 4e-6;  // from one kernel of a stream to the next, with ramp up and down
constexpr double kHopSeconds = 5e-6;     // NCCL's ring, simple protocol: between the latencies of NVLink and network

// Fitted on published runs of other programs; Hopper's attention is measured by others, Blackwell's row is Hopper's
// (README.md).
// gemm, attention, native_attention, memory, bus, contention
constexpr Efficiency kAmpere = {0.673, 0.395, 0.365, 0.90, 0.63, 0.065};
constexpr Efficiency kHopperOfOthers = {0.657, 0.500, 0.186, 0.617, 0.60, 0.25};
constexpr Efficiency kBlackwell = {0.657, 0.500, 0.186, 0.617, 0.60, 0.25};
// Tokamak's kernels on an H100 at 700 W, from scripts/gpu_check/publish.py; `gemm` leaves out the time of a GEMM's
// bytes. `bus` and `contention` are the fitted ones.
constexpr Efficiency kHopper = {0.811, 0.499, 0.254, 0.870, 0.60, 0.25};
constexpr std::string_view kOnH100 = "an H100";

// Memory, its rate, NVLink and power are from NVIDIA's data sheets, whose NVLink figure counts both directions.
// Networks are those of the systems named (200 Gb/s is 25 GB/s).
constexpr GpuRow kRows[] = {
    {"a100-40", "NVIDIA A100-SXM4-40GB", 40960, 1555 * kGB, 300 * kGB, 400, 200 * kGB, kAmpere,
     "NVIDIA A100 data sheet, SXM 40 GB; DGX A100: 8 x 200 Gb/s"},
    {"a100-80", "NVIDIA A100-SXM4-80GB", 81920, 2039 * kGB, 300 * kGB, 400, 200 * kGB, kAmpere,
     "NVIDIA A100 data sheet, SXM 80 GB; DGX A100: 8 x 200 Gb/s"},
    {"a800-80", "NVIDIA A800-SXM4-80GB", 81920, 2039 * kGB, 200 * kGB, 400, 200 * kGB, kAmpere,
     "NVIDIA A800 data sheet: an A100 whose NVLink is 400 GB/s; 8 x 200 Gb/s"},
    {"h100", "NVIDIA H100 80GB HBM3", 81559, 3350 * kGB, 450 * kGB, 700, 400 * kGB, kHopper,
     "NVIDIA H100 data sheet, SXM; DGX H100: 8 x 400 Gb/s", kOnH100},
    {"h100-hbm2e-500w", "NVIDIA H100", 97871, 2400 * kGB, 450 * kGB, 500, 400 * kGB, kHopperOfOthers,
     "torchtitan's benchmarks of Meta's H100: 96 GB HBM2e at 2.4 TB/s, 500 W; 8 x 400 Gb/s"},
    {"h800", "NVIDIA H800", 81559, 3350 * kGB, 200 * kGB, 700, 400 * kGB, kHopper,
     "NVIDIA H800: an H100 SXM whose NVLink is 400 GB/s; 8 x 400 Gb/s", kOnH100},
    {"h200", "NVIDIA H200", 143771, 4800 * kGB, 450 * kGB, 700, 400 * kGB, kHopper,
     "NVIDIA H200 data sheet, SXM; DGX H200: 8 x 400 Gb/s", kOnH100},
    {"b200", "NVIDIA B200", 183359, 8000 * kGB, 900 * kGB, 1000, 400 * kGB, kBlackwell,
     "NVIDIA HGX B200 data sheet; DGX B200: 8 x 400 Gb/s"},
};

Machine machine_of(const GpuRow& row) {
  return {.name = row.name,
          .bf16_flops = peak_flops_of(row.driver_name, DType::kBF16),
          .f32_flops = peak_flops_of(row.driver_name, DType::kF32),
          .memory_bytes = row.memory_mib << 20,
          .free_share = kFreeShare,
          .memory_rate = row.memory_rate,
          .link_rate = row.link_rate,
          .network_rate = row.network_rate,
          .gpus_per_node = 8,
          .watts = row.watts,
          .launch_seconds = kKernelSeconds,
          .hop_seconds = kHopSeconds,
          .efficiency = row.efficiency,
          .source = row.source,
          .kernels_measured_on = std::string(row.kernels_measured_on)};
}

}  // namespace

std::span<const GpuRow> gpu_rows() { return kRows; }

const GpuRow* gpu_row_of(std::string_view device) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const GpuRow& one) {
    return device.find(one.driver_name) != std::string_view::npos;
  });
  return row == std::end(kRows) ? nullptr : row;
}

Machine find_machine(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json")) return read_machine(name_or_file);
  std::vector<std::string> names;
  for (const GpuRow& row : kRows) {
    if (row.name == name_or_file || row.driver_name == name_or_file) return machine_of(row);
    names.emplace_back(row.name);
  }
  const std::string near = nearest(name_or_file, names);
  fail(Kind::kConfig, str("the hardware table has no GPU '", name_or_file, "'"),
       str(near.empty() ? "" : str("did you mean ", near, "? "), "it has ", join(names, ", "),
           "; a .json file from tokamak bench works too"));
}

Machine cpu_machine() {
  return {
      .name = "cpu",
      .bf16_flops = 300e9,
      .f32_flops = 100e9,
      .memory_bytes = int64_t{16} << 30,
      .free_share = kFreeShare,
      .memory_rate = 20 * kGB,
      .link_rate = 4 * kGB,
      .network_rate = 4 * kGB,
      .gpus_per_node = 1,
      .launch_seconds = 5e-6,
      .hop_seconds = 50e-6,
      .efficiency = {.gemm = 1, .attention = 0.5, .native_attention = 0.5, .memory = 0.3, .bus = 1, .contention = 0},
      .cpu = true,
      .source =
          "about one core of an AMD EPYC with AVX512-BF16: GEMMs and copies as measured by bench; messages a guess"};
}

int64_t Machine::plannable_bytes() const {
  return memory_bytes - static_cast<int64_t>(free_share * double(memory_bytes));
}

Machine Machine::with_memory(int64_t bytes) const {
  Machine machine = *this;
  machine.memory_bytes = bytes;
  machine.free_share = 0;
  return machine;
}

Machine Machine::for_attention(AttentionKind kind) const {
  Machine machine = *this;
  if (kind == AttentionKind::kNative) machine.efficiency.attention = efficiency.native_attention;
  return machine;
}

namespace {

// Reads a number of a machine file, which must be in a range in which a simulated step is finite.
double within(const JsonValue& value, double least, double most) {
  const double number = value.number();
  if (!(number >= least && number <= most)) value.refuse(str("expected a number from ", least, " to ", most));
  return number;
}
double rate(const JsonValue& value) { return within(value, 1, 1e24); }  // per second
double share(const JsonValue& value) { return within(value, 1e-3, 10); }
double seconds(const JsonValue& value) { return within(value, 0, 3600); }
// FLOPs, bytes or rows of a call; 0: none.
double count_or_none(const JsonValue& value) {
  return value.present() && value.number() == 0 ? 0 : within(value, 1, 1e24);
}
template <class Read>
double or_else(const JsonValue& value, double missing, const Read& read) {
  return value.present() ? read(value) : missing;
}

}  // namespace

Machine read_machine(const std::string& path) {
  const JsonDocument file = JsonDocument::read(path, Kind::kConfig);
  const JsonValue root = file.root(), shares = root["efficiency"];
  Machine machine{.name = printable(root["name"].text()),
                  .bf16_flops = rate(root["bf16_flops"]),
                  .f32_flops = rate(root["f32_flops"]),
                  .memory_bytes = root["memory_bytes"].whole(1),
                  .free_share = kFreeShare,
                  .memory_rate = rate(root["memory_rate"]),
                  .link_rate = rate(root["link_rate"]),
                  .network_rate = count_or_none(root["network_rate"]),
                  .gpus_per_node = static_cast<int>(root["gpus_per_node"].whole(1, 1 << 20)),
                  .watts = or_else(root["watts"], 0, [](const JsonValue& watts) { return within(watts, 0, 1e6); }),
                  .launch_seconds = seconds(root["launch_seconds"]),
                  .hop_seconds = seconds(root["hop_seconds"]),
                  .efficiency = {share(shares["gemm"]), share(shares["attention"]), share(shares["native_attention"]),
                                 share(shares["memory"]), share(shares["bus"]), within(shares["contention"], 0, 0.99),
                                 or_else(shares["beside"], 1, share)},
                  .cpu = root["cpu"].truth_or(false),
                  .source = printable(root["source"].text(), 160)};
  if (!root["measured"].present()) return machine;
  for (const JsonValue& op : root["measured"].items()) {
    const auto rows = [&](const char* key) { return or_else(op[key], 0, count_or_none); };
    machine.measured.push_back({op["name"].text(), rows("m"), rows("n"), rows("k"), count_or_none(op["flops"]),
                                count_or_none(op["bytes"]), within(op["seconds"], 1e-12, 3600)});
  }
  return machine;
}

double network_rate(const std::string& text) {
  const auto refuse = [&]() {
    fail(Kind::kConfig, str("'", text, "' is not a network"), "bits per second of a node: 400Gb, 8x400Gb or 3.2Tb");
  };
  double ports = 1;
  std::string rate = text;
  if (const size_t x = text.find('x'); x != std::string::npos) {
    char* end = nullptr;
    ports = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + x) refuse();
    rate = text.substr(x + 1);
  }
  char* end = nullptr;
  const double count = std::strtod(rate.c_str(), &end);
  const std::string_view unit = end;
  const double bits = unit == "Gb" ? 1e9 : unit == "Tb" ? 1e12 : 0;
  if (!(count > 0) || !(ports > 0) || bits == 0) refuse();
  return ports * count * bits / 8;
}

}  // namespace tokamak
