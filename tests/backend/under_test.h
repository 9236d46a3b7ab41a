// The backend that the cases run on. Each program that links them defines it once.
#pragma once

#include "backend/backend.h"

namespace tokamak::testing {

Backend make_backend_under_test();

}  // namespace tokamak::testing
