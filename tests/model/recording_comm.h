// Rank 0 of two: records its collectives, and moves nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace tokamak {

class RecordingComm final : public Comm {
 public:
  struct Call {
    std::string name;
    const void* slice;
  };
  std::vector<Call> calls;

  int rank() const override { return 0; }
  int size() const override { return 2; }
  void do_all_gather(Stream&, Tensor slice, Tensor) override { calls.push_back({"gather ", slice.data()}); }
  void do_reduce_scatter(Stream&, const ReduceScatter& args) override {
    calls.push_back({"reduce ", args.slice.data()});
  }
  void do_exchange(Stream&, std::span<const Transfer>, std::span<const Transfer>) override {}
  void do_all_reduce(Stream&, Tensor) override {}
  void do_barrier() override {}
  void do_broadcast(std::string&, int) override {}
  std::vector<std::string> do_gather_all(const std::string& bytes) override { return {bytes, bytes}; }
  int64_t do_max(int64_t value) override { return value; }
  std::unique_ptr<Comm> do_split(int) override { return nullptr; }
};

}  // namespace tokamak
