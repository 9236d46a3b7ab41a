// Faults planted for the doctor's tests: a group whose collectives are wrong or late on one rank, a device that
// computes wrong bits or slowly. Helpers read the doctor's findings.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "backend/observer.h"
#include "comm/comm.h"
#include "doctor/check.h"
#include "support/temp_dir.h"

namespace tokamak::doctor {

// A rank's change to a collective's result; empty: none. The parts of a split group do the same.
struct Planted {
  std::function<void(Tensor)> in_gather, in_reduce, in_sum;
};

class PlantedComm : public Comm {
 public:
  PlantedComm(std::unique_ptr<Comm> inner, Planted planted) : inner_(std::move(inner)), planted_(std::move(planted)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int64_t scratch_elements(int64_t slice, DType dtype) const override { return inner_->scratch_elements(slice, dtype); }

 protected:
  void do_barrier() override { inner_->barrier(); }
  void do_broadcast(std::string& bytes, int root) override { inner_->broadcast(bytes, root); }
  std::vector<std::string> do_gather_all(const std::string& bytes) override { return inner_->gather_all(bytes); }
  int64_t do_max(int64_t value) override { return inner_->max(value); }
  std::unique_ptr<Comm> do_split(int color) override {
    return std::make_unique<PlantedComm>(inner_->split(color), planted_);
  }
  void do_all_gather(Stream& stream, Tensor slice, Tensor full) override {
    inner_->all_gather(stream, slice, full);
    if (planted_.in_gather) planted_.in_gather(full);
  }
  void do_reduce_scatter(Stream& stream, const ReduceScatter& args) override {
    inner_->reduce_scatter(stream, args);
    if (planted_.in_reduce) planted_.in_reduce(args.slice);
  }
  void do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    inner_->exchange(stream, sends, receives);
  }
  void do_all_reduce(Stream& stream, Tensor x) override {
    inner_->all_reduce(stream, x);
    if (planted_.in_sum) planted_.in_sum(x);
  }

 private:
  std::unique_ptr<Comm> inner_;
  Planted planted_;
};

// Calls `fault` with the number of the GEMM (1, 2, ...) and its result.
class PlantedGemm : public Observer {
 public:
  explicit PlantedGemm(std::function<void(int64_t, Tensor)> fault) : fault_(std::move(fault)) {}
  void begin(Stream&, const Call&) override {}
  void end(Stream&, const Call& call) override {
    if (std::string(call.name) != "gemm") return;
    for (const Operand& operand : call.operands) {
      if (std::string(operand.name) == "c") fault_(++calls_, *operand.tensor);
    }
  }

 private:
  std::function<void(int64_t, Tensor)> fault_;
  int64_t calls_ = 0;
};

// Hosts "n0", "n1", ...: one of each rank.
inline RankHosts a_host_each(int ranks) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back("n" + std::to_string(rank));
  return RankHosts(hosts);
}

// Rank 0's directory, for all ranks.
inline std::string shared_path(Comm& comm, const TempDir& own) {
  std::string path = own.path();
  comm.broadcast(path, 0);
  return path;
}

// All notes as text: "fail n1: rank 1 ...\n".
inline std::string notes_of(const CheckResult& result) {
  std::string text;
  for (const Note& note : result.notes) text += str(name_of(note.status), " ", note.host, ": ", note.text, "\n");
  return text;
}

inline bool says(const CheckResult& result, const std::string& text) {
  return notes_of(result).find(text) != std::string::npos;
}

}  // namespace tokamak::doctor
