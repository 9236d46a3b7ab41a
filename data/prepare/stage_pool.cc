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
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// A job wakes one thread, and the owner once it is the oldest: waking every thread for every job would cost more than
// the work where there are many.
void StagePool::submit(std::unique_ptr<DocumentReader> reader) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->reader = std::move(reader);
    waiting_.push_back(jobs_.back().get());
  }
  work_.notify_one();
}

Batch StagePool::take() {
  std::unique_lock lock(mutex_);
  front_done_.wait(lock, [&] { return jobs_.front()->done; });
  const std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  --pending_;
  lock.unlock();
  if (job->error) std::rethrow_exception(job->error);
  return std::move(job->batch);
}

void StagePool::run() {
  Stages stages;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    Job& job = *waiting_.front();  // the reference stays valid: only finished jobs are removed
    waiting_.pop_front();
    lock.unlock();
    try {
      if (stages.empty()) stages = make_();
      for (Document document; job.reader->next(document);) {  // one at a time, so that a text stays in the cache
        document.dropped =
            !std::all_of(stages.begin(), stages.end(), [&](auto& stage) { return stage->run(document); });
        job.batch.push_back(std::move(document));
      }
    } catch (...) {
      job.error = std::current_exception();
    }
    job.reader.reset();
    lock.lock();
    job.done = true;
    if (jobs_.front().get() == &job) front_done_.notify_one();
  }
}

}  // namespace tokamak
