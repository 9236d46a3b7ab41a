// The state that a rank's watchdog sends to the others every second. All ranks run the same program, so the struct
// travels as its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "resilience/flight_record.h"
#include "resilience/progress.h"

namespace tokamak {

struct Heartbeat {
  Phase phase = Phase::kStart;
  int32_t pid = 0;
  int64_t step = 0;
  int64_t begun = 0;  // calls; as FlightRecord::Position
  int64_t ended = 0;
  int64_t collectives = 0;
  bool in_collective = false;
  double idle = 0;  // seconds since this rank's last progress
  double limit = 0;
  PhaseGaps gaps;
  int64_t steps = 0;  // as RunProgress::Reading
  double computing = 0;
  std::array<char, 48> inside{};  // the call under way, cut; or ""

  static Heartbeat of(const RunProgress& progress, const FlightRecord& record, const Limits& limits);
  std::string place() const;  // "in all_gather, phase step, step 12"
  std::string text() const;  // "phase step, step 12, in all_gather, after 340 collective(s) ..., no progress for 3.1 s"
};
static_assert(std::is_trivially_copyable_v<Heartbeat>);

// The messages of watchdogs over Watch's connections: a kind, then its body.
enum class MessageKind : char { kHeartbeat = 'h', kAsk = 'a', kReport = 'r', kLeave = 'l' };
std::string message(MessageKind kind, const std::string& body = "");
std::string message(const Heartbeat& heartbeat);
bool read_heartbeat(const std::string& bytes,
                    Heartbeat& heartbeat);  // false: the bytes are no heartbeat

}  // namespace tokamak
