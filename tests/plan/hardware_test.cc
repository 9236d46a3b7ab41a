// The hardware table and the cost of single calls on it, against numbers worked out by hand.
#include "plan/hardware.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "plan/cost_model.h"
#include "support/temp_dir.h"

using namespace tokamak;

TEST_CASE("each row of the hardware table has a source, a peak and rates that a part of the maker's can be of") {
  REQUIRE(gpu_rows().size() >= 6);
  for (const GpuRow& row : gpu_rows()) {
    INFO(row.name);
    CHECK(std::string(row.source).size() > 20);
    const Machine machine = find_machine(row.name);
    CHECK(machine.bf16_flops > 100e12);
    CHECK(machine.f32_flops < machine.bf16_flops);
    CHECK(machine.memory_bytes > int64_t{39} << 30);
    for (const double share :
         {machine.efficiency.gemm, machine.efficiency.attention, machine.efficiency.memory, machine.efficiency.bus}) {
      CHECK(share > 0.2);
      CHECK(share <= 1);
    }
    CHECK(machine.efficiency.contention < 0.5);
    CHECK(machine.efficiency.native_attention > 0.1);
    CHECK(machine.efficiency.native_attention <= machine.efficiency.attention);
    CHECK(machine.hop_seconds < 1e-3);
  }
  CHECK(find_machine("h100").bf16_flops == 989.5e12);
  CHECK(find_machine("NVIDIA H200").name == "h200");  // as the driver names it
  CHECK(find_machine("a100-80").memory_bytes == int64_t{80} << 30);
}

TEST_CASE("an unknown GPU is refused with the rows that there are") {
  try {
    find_machine("h10");
    FAIL("found");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK(error.hint().find("did you mean h100?") != std::string::npos);
    CHECK(error.hint().find("a100-80") != std::string::npos);
  }
}

TEST_CASE("a plan leaves a share of a device's memory free, unless the memory is stated") {
  const Machine machine = find_machine("h100");
  CHECK(machine.plannable_bytes() == machine.memory_bytes - static_cast<int64_t>(0.04 * double(machine.memory_bytes)));
  CHECK(machine.with_memory(1000).memory_bytes == 1000);
  CHECK(machine.with_memory(1000).plannable_bytes() == 1000);
}

TEST_CASE("a machine file whose numbers no step could be simulated with is refused by its key") {
  const TempDir dir;
  const auto read = [&](const std::string& was, const std::string& is) {
    std::string text = R"({"name": "x", "bf16_flops": 1e12, "f32_flops": 5e11, "memory_bytes": 1000000,
      "memory_rate": 2e10, "link_rate": 3e9, "network_rate": 0, "gpus_per_node": 2, "watts": 0, "launch_seconds": 0,
      "hop_seconds": 0, "efficiency": {"gemm": 1, "attention": 0.5, "native_attention": 0.4, "memory": 0.3, "bus": 0.9,
      "contention": 0.25, "beside": 0.75}, "measured": [{"name": "rmsnorm", "flops": 0, "bytes": 64, "seconds": 1e-6}],
      "source": "a test"})";
    if (!was.empty()) text.replace(text.find(was), was.size(), is);
    write_text_atomically(dir.file("m.json"), text, Kind::kConfig);
    return read_machine(dir.file("m.json"));
  };
  CHECK(read("", "").efficiency.beside == 0.75);
  const auto [key, was, is] = GENERATE(table<std::string, std::string, std::string>(
      {{"bf16_flops", "1e12", "0"},
       {"f32_flops", "5e11", "-5e11"},
       {"memory_bytes", "1000000", "0"},
       {"memory_rate", "2e10", "0"},
       {"link_rate", "3e9", "0"},
       {"network_rate", "\"network_rate\": 0", "\"network_rate\": -1"},
       {"gpus_per_node", "\"gpus_per_node\": 2", "\"gpus_per_node\": 0"},
       {"watts", "\"watts\": 0", "\"watts\": -1"},
       {"launch_seconds", "\"launch_seconds\": 0", "\"launch_seconds\": -1e-6"},
       {"hop_seconds", "\"hop_seconds\": 0", "\"hop_seconds\": 1e300"},
       {"efficiency.gemm", "\"gemm\": 1", "\"gemm\": 0"},
       {"efficiency.memory", "0.3", "-0.3"},
       {"efficiency.contention", "0.25", "1"},
       {"efficiency.beside", "0.75", "0"},
       {"seconds", "1e-6", "0"},
       {"bytes", "64", "-64"}}));
  INFO(key);
  CHECK_THROWS_WITH(read(was, is), Catch::Contains(key + "' is "));
}

TEST_CASE("a network is bits per second of a node") {
  CHECK(network_rate("400Gb") == 50e9);
  CHECK(network_rate("8x400Gb") == 400e9);
  CHECK(network_rate("3.2Tb") == 400e9);
  for (const char* text : {"", "400", "400GB", "xGb", "8x", "-8x400Gb", "0Gb", "8y400Gb"}) {
    INFO(text);
    CHECK_THROWS_AS(network_rate(text), Error);
  }
}

TEST_CASE("the rate of a collective is NVLink's within a node, and the slower of NVLink and network across") {
  Machine machine = find_machine("a100-80");
  machine.efficiency.bus = 0.5;
  CHECK(bus_rate(machine, 8) == Approx(150e9));
  CHECK(bus_rate(machine, 16) == Approx(100e9));
  machine.network_rate = 50e9;
  CHECK(bus_rate(machine, 8) == Approx(150e9));
  CHECK(bus_rate(machine, 9) == Approx(25e9));
  machine.network_rate = 1e12;
  CHECK(bus_rate(machine, 9) == Approx(150e9));
  machine.gpus_per_node = 1;
  CHECK(bus_rate(machine, 2) == Approx(500e9));
}

TEST_CASE("groups whose members are apart share the ports of a node") {
  Machine machine = find_machine("a100-80");
  machine.efficiency.bus = 1;
  machine.network_rate = 200e9;
  CHECK(bus_rate(machine, 4, 8) == Approx(25e9));   // one replica per node, so eight groups share the ports
  CHECK(bus_rate(machine, 16, 4) == Approx(50e9));  // two replicas per node, so four groups share them
  CHECK(bus_rate(machine, 4, 64) == Approx(25e9));
  CHECK(bus_rate(machine, 4, 2) == Approx(300e9));  // inside a node
}

TEST_CASE("a measured machine takes the nearest call that was measured, scaled by its FLOPs or bytes") {
  Machine machine = find_machine("h100");
  machine.launch_seconds = 0;
  machine.measured = {
      {.name = "all_gather", .bytes = 1e6, .seconds = 2e-3},
      {.name = "all_gather", .bytes = 1e9, .seconds = 1},
      {.name = "gemm small", .m = 64, .n = 64, .k = 64, .flops = 524288, .bytes = 0, .seconds = 1e-3},
      {.name = "gemm large", .m = 4096, .n = 4096, .k = 4096, .flops = 137438953472.0, .bytes = 0, .seconds = 4},
      {.name = "rmsnorm", .bytes = 1e3, .seconds = 1e-6}};
  const Backend backend = plan_cpu_backend();
  StepRecord::Distinct gather{
      .kind = CallKind::kCollective, .name = "all_gather", .title = "all_gather", .exchanged = 2e6, .ranks = 2};
  CHECK(cost_of(gather, machine, *backend.ops).seconds() == Approx(4e-3));
  gather.exchanged = 5e8;
  CHECK(cost_of(gather, machine, *backend.ops).seconds() == Approx(0.5));
  gather.name = "reduce_scatter";  // not measured, so the link's rate is used
  CHECK(cost_of(gather, machine, *backend.ops).work == Approx(5e8 / bus_rate(machine, 2)));

  float x = 0;
  const auto square = [&](int64_t n) { return Tensor(&x, DType::kF32, {n, n}); };
  for (const auto& [n, seconds] : {std::pair{int64_t{128}, 8e-3}, std::pair{int64_t{2048}, 0.5}}) {
    const Gemm gemm{.a = square(n), .b = square(n), .c = square(n), .label = "other"};
    const StepRecord::Distinct call{
        .kind = CallKind::kOperation, .name = "gemm", .title = "gemm other", .arguments = gemm};
    CHECK(cost_of(call, machine, *backend.ops).seconds() == Approx(seconds));
  }
  const StepRecord::Distinct norm{
      .kind = CallKind::kOperation, .name = "rmsnorm", .title = "rmsnorm", .bytes = 3e3, .arguments = RmsNorm{}};
  CHECK(cost_of(norm, machine, *backend.ops).seconds() == Approx(3e-6));
}

TEST_CASE("a collective takes a hop for each further rank and its bytes over the link's rate") {
  Machine machine = find_machine("h100");
  machine.efficiency.bus = 0.8;
  machine.hop_seconds = 1e-6;
  const Backend backend = plan_cpu_backend();
  StepRecord::Distinct call{
      .kind = CallKind::kCollective, .name = "all_gather", .title = "all_gather", .exchanged = 7e9, .ranks = 8};
  const CallCost cost = cost_of(call, machine, *backend.ops);
  CHECK(cost.resource == CallCost::Resource::kLink);
  CHECK(cost.fixed == Approx(7e-6));
  CHECK(cost.work == Approx(7.0 / 360));
  call.ranks = 1;
  CHECK(cost_of(call, machine, *backend.ops).seconds() == 0);
}

TEST_CASE("an exchange takes one hop, and the longer of its two directions over the slowest link of its group") {
  Machine machine = find_machine("h100");
  machine.efficiency.bus = 0.8;
  machine.hop_seconds = 1e-6;
  machine.network_rate = 400e9;  // of a node of eight, so 50e9 of each GPU
  const Backend backend = plan_cpu_backend();
  StepRecord::Distinct call{.kind = CallKind::kCollective, .name = "exchange", .title = "exchange", .exchanged = 2e9};
  const auto cost = [&](double received, int ranks, int stride) {
    call.received = received;
    call.ranks = ranks;
    call.stride = stride;
    return cost_of(call, machine, *backend.ops);
  };
  CHECK(cost(0, 8, 1).resource == CallCost::Resource::kLink);
  CHECK(cost(0, 8, 1).fixed == Approx(1e-6));
  CHECK(cost(0, 8, 1).work == Approx(2.0 / 360));
  CHECK(cost(3e9, 8, 1).work == Approx(3.0 / 360));
  CHECK(cost(3e9, 4, 2).work == Approx(3.0 / 360));
  CHECK(cost(3e9, 9, 1).work == Approx(3.0 / 40));
  CHECK(cost(3e9, 4, 8).work == Approx(3.0 / 40));
  CHECK(cost(3e9, 64, 2).work == Approx(3.0 / 40));  // a ring would have half of the ports
  CHECK(cost(3e9, 1, 1).seconds() == 0);
  machine.network_rate = 8 * 900e9;
  CHECK(cost(3e9, 9, 1).work == Approx(3.0 / 360));
}
