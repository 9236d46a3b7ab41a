// How an error on one rank becomes the error of all: phases that may fail (reading the config, opening the data,
// planning memory, loading) run in together(), so that no rank waits for one that has given up.
#pragma once

#include <functional>

#include "base/error.h"
#include "dist/comm.h"

namespace tokamak {

// An Error that every rank has thrown alike: rank 0 reports it and all leave in good order.
class SharedError : public Error {
 public:
  using Error::Error;
};

// Runs `phase` on every rank. If it throws anywhere, every rank throws the SharedError of the lowest rank that failed.
void together(Comm& comm, const std::function<void()>& phase);

}  // namespace tokamak
