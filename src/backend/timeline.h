// Begin and end times of a device's work, by its own timestamps: recording never synchronises.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/observer.h"

namespace tokamak {

class Timeline final : public Observer {
 public:
  explicit Timeline(Device& device) : device_(device) {}

  void begin(Stream& stream, const Call& call) override;
  void end(Stream& stream, const Call& call) override;

  struct Entry {
    CallKind kind;
    std::string title, text;  // Call::title(), Call::text()
    const char* stream;       // name of the stream
    double flops, bytes, exchanged;
    double begin, end;            // on the device, in seconds since `start`
    double host_begin, host_end;  // when the host enqueued it, also since `start`
  };
  // Entries of all calls, in host order. Synchronises with the streams, which must still exist.
  std::vector<Entry> entries() const;
  double start() const { return start_; }  // now_seconds() at the first call

 private:
  struct Marked {
    Entry entry;
    std::unique_ptr<Timestamp> begin, end;
  };
  Device& device_;
  std::unique_ptr<Timestamp> origin_;
  double start_ = 0;
  std::set<Stream*> streams_;
  std::vector<Marked> calls_;
};

// Device time by operation, copy and collective.
struct ProfileEntry {
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

using Profile = std::map<std::string, ProfileEntry>;  // by Call::title()
Profile profile_of(const std::vector<Timeline::Entry>& entries);

}  // namespace tokamak
