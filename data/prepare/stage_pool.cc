#include "data/prepare/stage_pool.h"

#include <algorithm>

namespace tokamak {

StagePool::StagePool(MakeStages make, int64_t threads) : make_(std::move(make)) {
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

StagePool::~StagePool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void StagePool::submit(Batch batch) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->batch = std::move(batch);
  }
  changed_.notify_all();
}

Batch StagePool::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.front()->state == State::kDone; });
  const std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  --pending_;
  if (job->error) std::rethrow_exception(job->error);
  return std::move(job->batch);
}

void StagePool::run() {
  Stages stages;
  std::unique_lock lock(mutex_);
  for (;;) {
    auto waiting = jobs_.end();
    changed_.wait(lock, [&] {
      waiting = std::find_if(jobs_.begin(), jobs_.end(), [](const auto& j) { return j->state == State::kWaiting; });
      return stop_ || waiting != jobs_.end();
    });
    if (stop_) return;
    Job& job = **waiting;  // the reference stays valid: only finished jobs are removed
    job.state = State::kRunning;
    lock.unlock();
    try {
      if (stages.empty()) stages = make_();
      for (Document& document : job.batch) {
        document.dropped =
            !std::all_of(stages.begin(), stages.end(), [&](auto& stage) { return stage->run(document); });
      }
    } catch (...) {
      job.error = std::current_exception();
    }
    lock.lock();
    job.state = State::kDone;
    changed_.notify_all();
  }
}

}  // namespace tokamak
