// The result of one check, and the ranks it speaks of. Every rank holds the same result; rank 0 prints it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/facts.h"

namespace tokamak::doctor {

enum class Status { kOk, kWarn, kFail, kSkipped };
const char* name_of(Status status);  // "ok", "warn", "fail", "skipped"

// One thing that a check found. `host` is the host at fault; "" where the fault is the job's or cannot be placed.
struct Note {
  Status status = Status::kWarn;
  std::string host;
  std::string text;
};

struct CheckResult {
  std::string name;
  Kind kind = Kind::kDevice;  // the exit code if it fails
  Status status = Status::kOk;
  std::string value;  // one line: what was measured
  std::vector<Note> notes;
  std::vector<Facts> ranks;  // what each rank measured; may be empty
  double seconds = 0;

  void warn(const std::string& host, const std::string& text) { add({Status::kWarn, host, text}); }
  void fail(const std::string& host, const std::string& text) { add({Status::kFail, host, text}); }
  void add(Note note);  // the status becomes the worst of the notes'
};

CheckResult skipped(const std::string& name, const std::string& why);

// Which rank runs on which host.
class RankHosts {
 public:
  explicit RankHosts(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}  // by rank

  int size() const { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const { return hosts_.at(static_cast<size_t>(rank)); }
  std::vector<std::string> hosts() const;  // each once, in the order of the ranks
  std::vector<int> first_ranks() const;    // the lowest rank of each of hosts()
  std::vector<int> ranks_of(const std::string& name) const;
  std::string name(int rank) const;                        // "rank 3 (n2)"
  std::string names(const std::vector<int>& ranks) const;  // "ranks 0 2 3 (n2)", of one host

 private:
  std::vector<std::string> hosts_;
};

// A fail note for each rank that has the fact kError, with the error's kind; whether there was one.
bool report_errors(CheckResult& result, const RankHosts& peers);

// Notes of `status`, by host, for ranks whose fact differs from what most ranks have (rank 0's, where two are as common).
void expect_equal(CheckResult& result, const RankHosts& peers, const std::string& fact, Status status,
                  const std::string& consequence);

// A device's description (backend/device.h) without its number on the host: equal for equal devices.
std::string device_model(const std::string& description);

double median(std::vector<double> values);  // 0 of none

}  // namespace tokamak::doctor
