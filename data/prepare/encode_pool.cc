#include "data/prepare/encode_pool.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

EncodePool::EncodePool(const Tokenizer& tokenizer, EncodePoolOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  for (int64_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
}

EncodePool::~EncodePool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void EncodePool::submit(EncodeBatch batch) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->batch = std::move(batch);
  }
  changed_.notify_all();
}

EncodeBatch EncodePool::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.front()->state == State::kDone; });
  const std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  --pending_;
  if (job->error) std::rethrow_exception(job->error);
  return std::move(job->batch);
}

void EncodePool::run() {
  std::unique_ptr<Encoder> encoder;
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
      if (!encoder) encoder = tokenizer_.make_encoder();
      encode(*encoder, job.batch);
    } catch (...) {
      job.error = std::current_exception();
    }
    lock.lock();
    job.state = State::kDone;
    changed_.notify_all();
  }
}

void EncodePool::encode(Encoder& encoder, EncodeBatch& batch) const {
  for (RawDocument& document : batch.documents) {
    const std::string text = text_of(std::move(document), options_.json_key, &batch.faults.emplace_back());
    if (!trim(text).empty()) {
      if (options_.bos_id >= 0) batch.ids.push_back(options_.bos_id);
      encoder.encode(text, batch.ids);
      if (options_.eos_id >= 0) batch.ids.push_back(options_.eos_id);
    }
    batch.bytes.push_back(static_cast<int64_t>(text.size()));
    batch.ends.push_back(static_cast<int64_t>(batch.ids.size()));
  }
}

}  // namespace tokamak
