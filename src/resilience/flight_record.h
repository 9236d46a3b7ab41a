// The last calls that this rank has made of its devices and groups, always on: what a report of a hang shows. Each call
// is progress, too. Recording one costs some hundred nanoseconds.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/observer.h"
#include "comm/comm.h"
#include "resilience/progress.h"

namespace tokamak {

class FlightRecord final : public Observer, public Comm::HostObserver {
 public:
  static constexpr size_t kCalls = 100;

  explicit FlightRecord(RunProgress& progress) : progress_(progress), training_(std::this_thread::get_id()) {}

  void begin(Stream& stream, const Call& call) override;
  void end(Stream& stream, const Call& call) override;
  void host_waits(Stream& stream) override;  // for a collective beside, as inside a call of it
  void host_waited(Stream& stream) override;
  bool wants_operations() const override { return false; }  // a graph of them is one call, which is enough

  void begin(const char* name) override;
  void end(const char* name) override;

  // So that two ranks can be compared: they call the same collectives in the same order.
  struct Position {
    int64_t begun = 0;  // calls
    int64_t ended = 0;
    int64_t collectives = 0;     // begun
    bool in_collective = false;  // and not come back from it
    std::string inside;          // the newest call that has not ended: "all_gather", "gemm qkv forward"; or ""
  };
  Position position() const;

  // The calls, oldest first, one a line: when it began, how long it took, stream, name, operands.
  std::string text() const;

 private:
  struct Argument {
    const char* name;
    DType dtype;
    Access access;
    Shape shape;
  };
  struct Entry {
    int64_t number = 0;  // 1, 2, ...
    CallKind kind = CallKind::kOperation;
    const char* stream = "";
    const char* name = "";
    const char* label = "";
    int64_t begin = 0;  // as RunProgress::now()
    int64_t end = 0;    // 0: under way
    size_t arguments = 0;
    std::array<Argument, Operands::kMost> argument;

    std::string title() const;
    std::string text(int64_t now) const;
  };

  Entry& add(CallKind kind, const char* stream, const char* name, const char* label, int64_t now);
  void close(const char* stream, const char* name, int64_t now);

  RunProgress& progress_;
  const std::thread::id training_;  // whose time in collectives counts
  mutable std::mutex mutex_;        // all but never contended: others read it after a hang
  std::array<Entry, kCalls> ring_;
  int64_t begun_ = 0, ended_ = 0, collectives_ = 0;
};

}  // namespace tokamak
