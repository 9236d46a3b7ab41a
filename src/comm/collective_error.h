// How an error on one rank becomes the error of all: phases that may fail (reading the config, opening the data,
// planning memory, loading) run in collectively(), so that no rank waits for one that has given up.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "comm/comm.h"

namespace tokamak {

// An Error that every rank has thrown alike: rank 0 reports it and all leave in good order.
class SharedError : public Error {
 public:
  using Error::Error;
};

// Runs `phase` on every rank. If it throws anywhere, every rank throws the SharedError of the lowest rank that failed.
void collectively(Comm& comm, const std::function<void()>& phase);

// The two halves of it, for callers that report an error themselves: what `phase` failed with, as text, or "" where it
// succeeded (a SharedError passes through: it is reported already); and the error of such a text, `where` put before
// what it says.
std::string failure_of(const std::function<void()>& phase);
SharedError shared_error(const std::string& failure, const std::string& where = "");

}  // namespace tokamak
