#include "base/parallel_for.h"

#include <omp.h>
#include <sched.h>

namespace tokamak {

int thread_count() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

void set_thread_count(int threads) { omp_set_num_threads(threads); }

std::string affinity() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return "all";
  std::string text(CPU_SETSIZE, '0');
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) text[core] = '1';
  }
  return text;
}

int available_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return omp_get_num_procs();
  return CPU_COUNT(&mask);
}

}  // namespace tokamak
