// Observers see each call of an operation, with its work, and what orders the streams.
#include "backend/observer.h"

#include "backend/timeline.h"
#include "base/clock.h"
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

HostTensor f32(Shape shape) { return HostTensor(DType::kF32, shape); }

}  // namespace

TEST_CASE("a timeline has each call between its begin and end, with its work, while it watches") {
  TestBackend cpu;
  const HostTensor a = f32({3, 4}), b = f32({4, 5}), c = f32({3, 5});
  const HostTensor qkv = f32({10, 16}), cu(DType::kI32, {2}, {0, 10}), out = f32({10, 8}), lse = f32({2, 10});
  Timeline timeline(*under_test().backend.device);
  cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c});
  const double before = now_seconds();
  {
    const Observation watched(*under_test().backend.device, timeline);
    cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c, .label = "first"});
    cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c, .write = Write::kAccumulate, .label = "first"});
    cpu.ops().fill(*cpu.stream, {.x = c, .value = 1});
    cpu.ops().attention(*cpu.stream, {qkv, cu, out, lse, HeadLayout{2, 1, 4}, 1.0f, 10});
    under_test().backend.device->copy_to_device(*cpu.stream, a.view().data(), b.view().flat(0, 12));
  }
  cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c});

  const std::vector<Timeline::Entry> entries = timeline.entries();
  REQUIRE(entries.size() == 5);
  double last = 0;
  for (const Timeline::Entry& entry : entries) {
    CHECK(last <= entry.begin);
    CHECK(entry.begin <= entry.end);
    // The CPU works while the host waits, so the host's times enclose its own, whatever else the machine does.
    CHECK(entry.host_begin <= entry.begin);
    CHECK(before + entry.end <= timeline.start() + entry.host_end);
    last = entry.end;
  }
  CHECK(entries[0].text == "gemm first a F32 (3, 4), b F32 (4, 5) -> c F32 (3, 5)");
  CHECK(entries[1].text == "gemm first a F32 (3, 4), b F32 (4, 5) -> c += F32 (3, 5)");
  CHECK(entries[4].kind == CallKind::kCopy);
  CHECK(entries[4].text == "copy to device -> tensor F32 (12)");

  Profile profile = profile_of(entries);
  REQUIRE(profile.size() == 4);
  const ProfileEntry& gemm = profile.at("gemm first");
  CHECK(gemm.calls == 2);
  CHECK(gemm.flops == 2 * (2 * 3 * 4 * 5));
  CHECK(gemm.bytes == 4 * (2 * (12 + 20) + 15 + 2 * 15));  // the second one reads what it adds to
  CHECK(gemm.seconds == Approx(entries[0].end - entries[0].begin + entries[1].end - entries[1].begin));
  CHECK(profile.at("fill").calls == 1);
  CHECK(profile.at("attention").flops == 4 * 55 * 2 * 4);  // 55 pairs of query and key, 2 heads of 4
}

TEST_CASE("observers see events, waits and the host's waiting, on the stream they are of") {
  struct Notes : Observer {
    void begin(Stream& stream, const Call& call) override { text += str(" ", stream.name(), ":", call.name, "("); }
    void end(Stream&, const Call&) override { text += ")"; }
    void recorded(Stream& stream, const Event&) override { text += str(" ", stream.name(), ":record"); }
    void waited(Stream& stream, const Event&) override { text += str(" ", stream.name(), ":wait"); }
    void synchronized(Stream& stream) override { text += str(" ", stream.name(), ":sync"); }
    std::string text;
  } notes;
  TestBackend cpu;
  Device& device = *under_test().backend.device;
  const auto copies = device.make_stream({.name = "copies"}), compute = device.make_stream({.name = "compute"});
  const auto event = device.make_event();
  const HostTensor x = f32({4});
  {
    const Observation watched(device, notes);
    CHECK(device.shows_operations());
    cpu.ops().fill(*copies, {.x = x, .value = 1});
    copies->record(*event);
    compute->wait(*event);
    compute->synchronize();
  }
  CHECK_FALSE(device.shows_operations());
  compute->synchronize();
  CHECK(notes.text == " copies:fill() copies:record compute:wait compute:sync");
}
