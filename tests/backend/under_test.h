// Which backend the cases run on: defined once in each program that they are linked into. Memory under test is touched
// by the host and by the backend alike.
#pragma once

#include <cstddef>

#include "backend/backend.h"

namespace tokamak::testing {

Backend make_backend_under_test();
std::byte* allocate_under_test(size_t bytes);  // aligned as an Arena's
void release_under_test(std::byte* memory);

}  // namespace tokamak::testing
