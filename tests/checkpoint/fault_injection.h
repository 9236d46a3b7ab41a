// Lets a test make the disk fail. This program's own open, write, fsync, rename and so on replace the C library's, for
// our code and for std::filesystem. The k-th operation below a directory can fail. It can also be the last one of the
// process or the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tokamak {

enum class Fault {
  kNone,        // count operations only
  kError,       // the operation fails with `error` and has no effect
  kShortWrite,  // a write takes half of its bytes
  kKill,        // the process dies before the operation
  kTornWrite,   // the process dies after half of the write
  kPowerLoss,   // the machine stops before the operation; whatever was not synced is gone: data, new names, renames
  kPowerLossOfData,  // as kPowerLoss, but the names had reached the disk: files are there and too short
};

struct FaultPlan {
  std::string under;  // operations on paths that begin with it
  Fault fault = Fault::kNone;
  int64_t at = 0;  // which operation, from 1
  int error = 0;   // errno of kError
};

void arm(const FaultPlan& plan);
void disarm();

// `action` runs once, at the moment when the next lock is asked for.
void before_next_flock(std::function<void()> action);

// `action` runs once, right before the `count`-th rename from now on (0: never), on the thread that renames.
void before_rename(int64_t count, std::function<void()> action);

// Since arm(): "fsync /path", in order.
const std::vector<std::string>& operations();

}  // namespace tokamak
