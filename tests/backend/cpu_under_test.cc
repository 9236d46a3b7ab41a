#include "backend/under_test.h"

namespace tokamak::testing {

Backend make_backend_under_test() { return make_cpu_backend(); }

}  // namespace tokamak::testing
