// Counts threads, so that a case tagged [one-thread] (tests/CMakeLists.txt) can be seen to start none.
#include "support/started_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace tokamak {

namespace {
std::atomic<int64_t> count{0};
}

int64_t started_threads() { return count; }

}  // namespace tokamak

// Comes before the library's, or the sanitizer's, for the program and its libraries.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  ++tokamak::count;
  return create(thread, attributes, run, argument);
}
