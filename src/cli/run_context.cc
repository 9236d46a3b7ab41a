#include "cli/run_context.h"

#include "base/log.h"
#include "comm/collective_error.h"

namespace tokamak::cli {

namespace {

void report(const Error& error) {
  log::error(error.what(), error.hint().empty() ? "" : "\n  hint: ", error.hint());
  log::flush();
}

}  // namespace

void or_end_all(World& world, const std::function<void()>& body) {
  try {
    body();
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    if (world.size() == 1) throw;
    report(error);
    world.end_all(error.exit_code());
  } catch (const std::exception& error) {
    if (world.size() == 1) throw;
    report(Error(Kind::kBug, error.what()));
    world.end_all(static_cast<int>(Kind::kBug));
  }
}

int run_in_world(const std::function<int(World&)>& body, std::function<bool()> interrupted) {
  World world(std::move(interrupted));
  log::configure(world.rank(), world.size(), log::Level::kInfo);
  int exit_code = 0;
  try {
    or_end_all(world, [&] { exit_code = body(world); });
  } catch (const SharedError& error) {
    if (world.rank() == 0) report(error);
    return error.exit_code();
  }
  return exit_code;
}

Backend make_backend_collectively(World& world, const RuntimeOptions& options) {
  // A launcher may give each rank its own cores, or the same ones to several.
  const int ranks_on_cores = world.ranks_on_cores();
  RuntimeOptions own = options;
  if (world.size() == 1) own.nccl_max_ctas = 0;  // no SMs are kept for NCCL
  Backend backend;
  collectively(world.comm(), [&] { backend = make_backend(own, world.local_rank(), ranks_on_cores); });
  return backend;
}

}  // namespace tokamak::cli
