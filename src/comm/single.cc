// The group of one rank: every collective is a copy or empty.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "comm/comm.h"
#include "comm/transfers.h"

namespace tokamak {

namespace {

class SingleComm : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void do_barrier() override {}
  void do_broadcast(std::string&, int) override {}
  std::vector<std::string> do_gather_all(const std::string& bytes) override { return {bytes}; }
  int64_t do_max(int64_t value) override { return value; }
  std::unique_ptr<Comm> do_split(int) override { return make_single_comm(); }

 protected:
  void do_all_gather(Stream& stream, Tensor slice, Tensor full) override {
    stream.run_on_host([slice, full] { copy(slice, full); });
  }
  void do_reduce_scatter(Stream& stream, const ReduceScatter& args) override {
    stream.run_on_host([args] { round_and_copy(args); });
  }
  void do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    stream.run_on_host([from = tensors_with(0, sends), to = tensors_with(0, receives)] { copy_each(from, to); });
  }
  void do_all_reduce(Stream&, Tensor) override {}

 private:
  static void round_and_copy(const ReduceScatter& args) {
    if (args.dtype == DType::kF32) return copy(args.full, args.slice);
    TOKAMAK_CHECK(args.dtype == DType::kBF16, name_of(args.dtype));
    // Rounding is part of the contract, even if nothing is sent.
    const float* from = args.full.as<float>();
    float* to = args.slice.as<float>();
    for (int64_t i = 0; i < args.slice.count(); ++i) to[i] = to_float(bf16(from[i]));
  }
  static void copy(Tensor from, Tensor to) {
    if (from.data() != to.data()) std::memcpy(to.data(), from.data(), from.bytes());
  }
};

}  // namespace

std::unique_ptr<Comm> make_single_comm() { return std::make_unique<SingleComm>(); }

}  // namespace tokamak
