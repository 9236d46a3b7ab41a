// The result of one check. Every rank holds the same result; rank 0 prints it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/comm.h"

namespace tokamak::doctor {

// The named values that one rank measured: whole numbers, reals and texts in the order they were set. All ranks judge
// the same facts of all ranks, so all reach the same result; `tokamak doctor --json` prints them.
class Facts {
 public:
  template <class Value>
  void set(const std::string& name, const Value& value) {
    values_[name] = value;
  }
  void add(const Facts& more) { values_.update(more.values_); }

  bool has(const std::string& name) const { return values_.contains(name); }
  double number(const std::string& name) const;     // 0 where it is missing or a text
  std::string text(const std::string& name) const;  // numbers too, as text; "" where it is missing
  const nlohmann::ordered_json& all() const { return values_; }

  // decode(encode()) keeps the bits of numbers and all bytes of texts.
  std::string encode() const;
  static Facts decode(const std::string& bytes);

 private:
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

enum class Status { kOk, kWarn, kFail, kSkipped };
const char* name_of(Status status);  // "ok", "warn", "fail", "skipped"

// One finding. `host` is the host at fault, or "" if the fault is the job's or its place is unknown.
struct Note {
  Status status = Status::kWarn;
  std::string host;
  std::string text;
};

struct CheckResult {
  std::string name;
  Kind kind = Kind::kDevice;  // gives the exit code if the check fails
  Status status = Status::kOk;
  std::string value;  // the measurement in one line
  std::vector<Note> notes;
  std::vector<Facts> ranks;  // by rank; may be empty
  double seconds = 0;

  void warn(const std::string& host, const std::string& text) { add({Status::kWarn, host, text}); }
  void fail(const std::string& host, const std::string& text) { add({Status::kFail, host, text}); }
  void add(Note note);                                         // the status becomes the worst of the notes'
  std::vector<double> numbers(const std::string& fact) const;  // by rank
};

CheckResult skipped(const std::string& name, const std::string& why);

// The host of each rank.
class RankHosts {
 public:
  explicit RankHosts(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}  // by rank

  int size() const { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const { return hosts_.at(rank); }
  std::vector<std::string> hosts() const;  // each once, in the order of the ranks
  std::vector<int> first_ranks() const;    // the lowest rank of each of hosts()
  std::vector<int> ranks_of(const std::string& host) const;
  std::string name(int rank) const;                        // "rank 3 (n2)"
  std::string names(const std::vector<int>& ranks) const;  // "ranks 0 2 3 (n2)", of one host

 private:
  std::vector<std::string> hosts_;
};

// Calls `take` on every rank and gathers the facts that it sets into result.ranks, next to those of earlier calls. An
// exception of `take` fails the check and blames the rank's host, unless all ranks throw. Returns whether none threw.
// Collective; `take` must not communicate, because a rank that throws would leave the others waiting.
bool measure(CheckResult& result, Comm& comm, const RankHosts& peers, const std::function<void(Facts&)>& take);

// Adds a note of `status` for each rank whose fact differs from the most common value (rank 0's in a tie).
void expect_equal(CheckResult& result, const RankHosts& peers, const std::string& fact, Status status,
                  const std::string& consequence);

// A device's description (backend/device.h) without its number on the host, so that equal devices have equal texts.
std::string device_model(const std::string& description);

}  // namespace tokamak::doctor
