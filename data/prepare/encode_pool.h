// Encodes batches of documents on several threads and returns them in submission order, so the output does not depend
// on the number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/prepare/text_reader.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

struct EncodeBatch {
  std::vector<RawDocument> documents;  // consumed
  std::vector<int32_t> ids;            // of all documents, concatenated, with BOS and EOS
  std::vector<int64_t> ends;           // (documents) end of each in ids; a document without text has no ids
  std::vector<TextFaults> faults;      // (documents)
  std::vector<int64_t> bytes;          // (documents) of the text of each
};

struct EncodePoolOptions {
  int64_t threads = 1;
  std::string json_key = "text";
  int32_t bos_id = -1;  // begins each document; -1: none
  int32_t eos_id = -1;  // ends each document
};

class EncodePool {
 public:
  EncodePool(const Tokenizer& tokenizer, EncodePoolOptions options);
  ~EncodePool();
  EncodePool(const EncodePool&) = delete;
  EncodePool& operator=(const EncodePool&) = delete;

  void submit(EncodeBatch batch);
  EncodeBatch take();  // waits for the oldest batch; rethrows its error
  int64_t pending() const { return pending_; }

 private:
  enum class State { kWaiting, kRunning, kDone };
  struct Job {
    EncodeBatch batch;
    State state = State::kWaiting;
    std::exception_ptr error;
  };
  void run();
  void encode(Encoder& encoder, EncodeBatch& batch) const;

  const Tokenizer& tokenizer_;
  const EncodePoolOptions options_;
  int64_t pending_ = 0;  // submitted and not taken; the owner's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tokamak
