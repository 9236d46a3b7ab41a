// The last calls of this rank to its devices and groups, which the report of a hang prints. Each call also counts as
// progress. Recording one takes some hundred nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <thread>

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
  void host_waits(Stream& stream) override;  // recorded as if inside the collective that it waits for
  void host_waited(Stream& stream) override;
  bool wants_operations() const override { return false; }  // a CUDA graph of them is one call

  void begin(const char* name) override;
  void end(const char* name) override;

  // Positions of ranks can be compared, because all call the same collectives in the same order.
  struct Position {
    int64_t begun = 0;        // calls
    int64_t collectives = 0;  // begun
    std::string inside;       // the newest call that has not ended: "all_gather", "gemm qkv forward"; or ""
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

  // `counts`: the call is a collective that all ranks make.
  void open(const char* stream, const Call& call, bool counts);
  void close(const char* stream, const char* name);
  const Entry& newest(int64_t back) const { return ring_[static_cast<size_t>(begun_ - back) % kCalls]; }  // from 1
  int64_t kept() const { return std::min<int64_t>(begun_, kCalls); }

  RunProgress& progress_;
  const std::thread::id training_;  // the thread whose time in collectives is summed
  mutable std::mutex mutex_;        // rarely contended: other threads read only after a hang
  std::array<Entry, kCalls> ring_;
  int64_t begun_ = 0, collectives_ = 0;
};

}  // namespace tokamak
