// The group of one rank: every collective is a copy, or nothing.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "comm/comm.h"

namespace tokamak {

namespace {

class SingleComm : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void all_gather(Stream&, Tensor slice, Tensor full) override { copy(slice, full); }
  void reduce_scatter(Stream&, const ReduceScatter& args) override {
    const Tensor full = args.full, slice = args.slice;
    TOKAMAK_CHECK(full.dtype() == DType::kF32, full.text());
    // The rounding is part of the contract, also where nothing travels.
    if (args.dtype == DType::kBF16) {
      TOKAMAK_CHECK(full.count() == slice.count(), full.text(), " to ", slice.text());
      const float* from = full.as<float>();
      float* to = slice.as<float>();
      for (int64_t i = 0; i < slice.count(); ++i) to[i] = to_float(bf16(from[i]));
    } else {
      copy(full, slice);
    }
  }
  void all_reduce(Stream&, Tensor) override {}

  void barrier() override {}
  void broadcast(std::string&, int) override {}
  std::vector<std::string> gather_all(const std::string& bytes) override { return {bytes}; }
  int64_t max(int64_t value) override { return value; }
  std::unique_ptr<Comm> split(int) override { return make_single_comm(); }
  void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  static void copy(Tensor from, Tensor to) {
    TOKAMAK_CHECK(from.count() == to.count() && from.dtype() == to.dtype(), from.text(), " to ", to.text());
    if (from.data() != to.data()) std::memcpy(to.data(), from.data(), static_cast<size_t>(from.bytes()));
  }
};

}  // namespace

std::unique_ptr<Comm> make_single_comm() { return std::make_unique<SingleComm>(); }

}  // namespace tokamak
