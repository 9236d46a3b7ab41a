#include "serve/engine_thread.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/service_thread.h"

namespace tokamak {

namespace {

constexpr int64_t kFailedSteps = 3;  // in a row, after which the engine has failed

}  // namespace

EngineThread::EngineThread(Batcher& batcher, const EngineThreadOptions& options)
    : batcher_(batcher),
      options_(options),
      last_end_(now_seconds()),
      thread_(start_service_thread("engine", [this] { run(); })) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void EngineThread::submit(Completion& completion) {
  const std::lock_guard lock(mutex_);
  if (failures_ >= kFailedSteps || weights_failed_)
    throw RequestError{503, "the model has failed; see the server's log"};
  if (completion.choices() > options_.max_queue + options_.slots) {
    throw RequestError{400, str("the request has ", completion.choices(), " texts; the server takes ",
                                options_.max_queue + options_.slots)};
  }
  const int64_t waiting = std::ssize(queue_);
  const int64_t free = options_.slots - occupied_;
  if (waiting + completion.choices() > options_.max_queue + free) {
    const auto wait = static_cast<int64_t>(std::ceil(seconds_per_text_ * double(waiting)));
    throw RequestError{429, str("the queue is full: ", waiting, " texts are waiting"), "", "queue_full",
                       std::clamp<int64_t>(wait, 1, 120)};
  }
  completion.when_over([this, &completion] {
    const std::lock_guard own(mutex_);
    active_.erase(find_active(&completion));
    const double now = now_seconds();
    if (!queue_.empty())
      seconds_per_text_ += 0.1 * (std::min(now - last_end_, 60.0) / double(completion.choices()) - seconds_per_text_);
    last_end_ = now;
  });
  active_.push_back({&completion, {}});
  for (int64_t choice = 0; choice < completion.choices(); ++choice) queue_.push_back({&completion, choice});
  changed_.notify_all();
}

void EngineThread::withdraw(Completion& completion) {
  std::unique_lock lock(mutex_);
  if (find_active(&completion) == active_.end()) return;
  leaving_.push_back(&completion);
  changed_.notify_all();
  answered_.wait(lock, [&] { return std::find(leaving_.begin(), leaving_.end(), &completion) == leaving_.end(); });
}

void EngineThread::replace_weights(const std::function<void()>& load) {
  std::unique_lock lock(mutex_);
  load_ = &load;
  changed_.notify_all();
  answered_.wait(lock, [&] { return load_ == nullptr; });
  if (load_error_) std::rethrow_exception(std::exchange(load_error_, nullptr));
}

bool EngineThread::has_failed() {
  const std::lock_guard lock(mutex_);
  return failures_ >= kFailedSteps || weights_failed_;
}

EngineThread::Texts EngineThread::texts() {
  const std::lock_guard lock(mutex_);
  return {occupied_, std::ssize(queue_)};
}

void EngineThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !leaving_.empty() || load_ || has_work(); });
    drop_leaving();
    if (stopping_) return;
    admit();
    if (has_work() && batcher_.running() + batcher_.waiting() > 0) {
      lock.unlock();
      step();
      lock.lock();
    } else if (load_) {
      load_weights(lock);
    }
  }
}

bool EngineThread::has_work() const { return !queue_.empty() || batcher_.running() + batcher_.waiting() > 0; }

void EngineThread::drop_leaving() {
  for (Completion* completion : leaving_) {
    std::erase_if(queue_, [&](const QueuedText& text) { return text.completion == completion; });
    const auto found = find_active(completion);
    if (found == active_.end()) continue;
    for (const int64_t text : found->texts) batcher_.cancel(text);
    active_.erase(found);
  }
  leaving_.clear();
  answered_.notify_all();
}

// While new weights wait, only texts of completions that have begun: all texts of one have the same weights.
void EngineThread::admit() {
  for (auto text = queue_.begin(); text != queue_.end() && batcher_.running() + batcher_.waiting() < options_.slots;) {
    const auto active = find_active(text->completion);
    if (load_ && active->texts.empty()) {
      ++text;
      continue;
    }
    if (active->texts.empty() && options_.step != nullptr) text->completion->begin(*options_.step);
    active->texts.push_back(
        batcher_.add(text->completion->request_of(text->choice), text->completion->receiver(text->choice)));
    text = queue_.erase(text);
  }
  occupied_ = batcher_.running() + batcher_.waiting();
}

void EngineThread::load_weights(std::unique_lock<std::mutex>& lock) {
  const std::function<void()>& load = *load_;
  lock.unlock();
  std::exception_ptr error;
  try {
    load();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  weights_failed_ = error != nullptr;
  if (!error) failures_ = 0;
  load_error_ = error;
  load_ = nullptr;
  answered_.notify_all();
}

// An error, such as logits that are not finite, ends all texts that run.
void EngineThread::step() {
  std::string problem;
  try {
    batcher_.step();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  std::vector<Completion*> failed;
  if (!problem.empty()) {
    log::error("a step of the model failed: ", problem);
    batcher_.cancel_all();
  }
  {
    const std::lock_guard lock(mutex_);
    occupied_ = batcher_.running() + batcher_.waiting();
    failures_ = problem.empty() ? 0 : failures_ + 1;
    if (problem.empty()) return;
    for (const Active& one : active_) {
      if (one.texts.empty()) continue;
      std::erase_if(queue_, [&](const QueuedText& text) { return text.completion == one.completion; });
      failed.push_back(one.completion);
    }
  }
  for (Completion* completion : failed) completion->fail({500, "the model failed; see the server's log"});
}

std::vector<EngineThread::Active>::iterator EngineThread::find_active(const Completion* completion) {
  return std::find_if(active_.begin(), active_.end(), [&](const Active& one) { return one.completion == completion; });
}

}  // namespace tokamak
