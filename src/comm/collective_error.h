// Turns an error on one rank into the error of all. Phases that may fail (reading the config, opening data, planning
// memory, loading) run in collectively(), so that no rank waits for one that has failed.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "comm/comm.h"

namespace tokamak {

// An Error that every rank has thrown: rank 0 reports it, and all leave in good order.
class SharedError : public Error {
 public:
  using Error::Error;
};

// Runs `phase` on every rank. If it throws anywhere, every rank throws the SharedError of the lowest rank that failed.
void collectively(Comm& comm, const std::function<void()>& phase);

// The two halves of collectively(), for callers that report an error themselves. failure_of returns the phase's error
// as text, or ""; it lets a SharedError, which rank 0 reports, pass through. shared_error makes an error from such a
// text, with `where` before its message.
std::string failure_of(const std::function<void()>& phase);
SharedError shared_error(const std::string& failure, const std::string& where = "");

}  // namespace tokamak
