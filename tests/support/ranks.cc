// Shared by both kinds of ranks: threads on demand, and reports one at a time.
#include "support/ranks.h"

#include "base/parallel_for.h"
#include "comm/thread_comm.h"

namespace tokamak {

void on_threads(int ranks, const RankBody& body) {
  run_on_threads(ranks, [&](Comm& comm) {
    set_thread_count(1);
    World world(comm.split(0));
    body(world);
  });
}

namespace rank_checks {

std::mutex& reporting() {
  static std::mutex mutex;
  return mutex;
}

void fail_rank(const Catch::SourceLineInfo& line, const std::string& text) {
  const std::lock_guard lock(reporting());
  Catch::AssertionHandler handler("FAIL", line, Catch::StringRef(), Catch::ResultDisposition::Normal);
  handler.handleMessage(Catch::ResultWas::ExplicitFailure, text);
  handler.complete();
  std::abort();  // not reached: complete() has thrown
}

}  // namespace rank_checks
}  // namespace tokamak
