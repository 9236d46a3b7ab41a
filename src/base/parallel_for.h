// One pool of threads for the whole process: OpenMP's, which oneDNN shares. Work is split into ranges that depend only
// on `count` and the number of threads. A kernel whose result must not depend on the number of threads makes each index
// independent, or reduces over a fixed partition.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

int thread_count();                  // threads that parallel_for uses
void set_thread_count(int threads);  // of the whole process, oneDNN included
std::string affinity();              // the cores of this process, as text for comparison
int available_cores();               // cores this process may run on (its affinity mask)

// Calls body(begin, end) on disjoint ranges that cover [0, count), each at least `grain` long except the last.
// The body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t pieces = grain > 0 ? (count + grain - 1) / grain : count;
  const int64_t threads = thread_count() < pieces ? thread_count() : pieces;
  if (threads <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  const auto team = static_cast<int>(threads);
#pragma omp parallel for schedule(static, 1) num_threads(team)
  for (int64_t t = 0; t < threads; ++t) {
    const int64_t begin = count * t / threads;
    const int64_t end = count * (t + 1) / threads;
    if (begin < end) body(begin, end);
  }
}

}  // namespace tokamak
