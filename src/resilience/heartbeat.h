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

struct Heartbeat : RunProgress::Reading {
  int32_t pid = 0;
  int64_t begun = 0, collectives = 0;  // as FlightRecord::Position
  double limit = 0;                    // seconds without progress that its phase may take
  std::array<char, 48> inside{};       // the call under way, cut to fit; or ""

  static Heartbeat of(const RunProgress& progress, const FlightRecord& record, const Limits& limits);
  std::string place() const;  // "in all_gather, phase step, step 12"
  std::string text() const;  // "phase step, step 12, in all_gather, after 340 collective(s) ..., no progress for 3.1 s"
};
static_assert(std::is_trivially_copyable_v<Heartbeat>);

// The messages of watchdogs over Watch's connections: a kind, then its body.
enum class MessageKind : char { kHeartbeat = 'h', kAsk = 'a', kReport = 'r', kLeave = 'l' };
std::string message(MessageKind kind, const std::string& body = "");
std::string message(const Heartbeat& heartbeat);
bool read_heartbeat(const std::string& bytes, Heartbeat& heartbeat);  // false: the bytes are no heartbeat

}  // namespace tokamak
