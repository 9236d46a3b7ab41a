// Which backend the cases run on: defined once in each program that they are linked into.
#pragma once

#include "backend/backend.h"

namespace tokamak::testing {

Backend make_backend_under_test();

}  // namespace tokamak::testing
