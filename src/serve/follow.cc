#include "serve/follow.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

namespace {

constexpr double kLookSeconds = 2;

void expect_whole(const CheckpointReader& reader) {
  for (int64_t file = 0; file < std::ssize(reader.manifest().files); ++file) {
    const std::string problem = reader.file_problem(file);
    if (!problem.empty()) fail(Kind::kCheckpoint, problem);
  }
}

}  // namespace

RunFollower::RunFollower(CheckpointStore store, ServedModel& model, Load load)
    : store_(std::move(store)),
      model_(model),
      load_(std::move(load)),
      timer_("follow", kLookSeconds, kLookSeconds, [this] { look(); }) {}

void RunFollower::look() {
  std::vector<int64_t> steps;
  try {
    steps = store_.steps();
  } catch (const Error& error) {  // the directory may come back
    log::warning(error.what());
  }
  for (auto step = steps.rbegin(); step != steps.rend() && *step > model_.step; ++step) {
    if (damaged_.contains(*step)) continue;
    try {
      CheckpointReader reader = store_.open(*step);
      expect_whole(reader);
      model_.engine->replace_weights([&] {
        load_(reader);
        model_.step = *step;
      });
      log::info("the weights are now those of ", reader.directory());
      return;
    } catch (const std::exception& error) {
      damaged_.insert(*step);
      log::warning("checkpoint ", store_.path_of(*step), " cannot be used: ", error.what());
    }
  }
}

}  // namespace tokamak
