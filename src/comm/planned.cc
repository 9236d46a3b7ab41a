#include "comm/planned.h"

#include <cstdlib>

#include "base/error.h"
#include "comm/data_comm.h"
#include "comm/exchange.h"

namespace tokamak {

namespace {

class PlannedComm : public Comm {
 public:
  PlannedComm(int size, bool nccl) : size_(size), nccl_(nccl) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  void all_gather(Stream&, Tensor, Tensor) override { refuse(); }
  void reduce_scatter(Stream&, const ReduceScatter&) override { refuse(); }
  int64_t scratch_elements(int64_t slice, DType dtype) const override {
    if (!nccl_) return ExchangeRounds{size_, slice, ExchangeRounds::kHostElements}.scratch_elements();
    return dtype == DType::kBF16 ? ExchangeRounds{size_, slice}.scratch_elements() : 0;
  }
  int64_t reserve_bytes() const override { return nccl_ && size_ > 1 ? kNcclCommunicators * kNcclReserveBytes : 0; }
  void all_reduce(Stream&, Tensor) override { refuse(); }
  void barrier() override { refuse(); }
  void broadcast(std::string&, int) override { refuse(); }
  std::vector<std::string> gather_all(const std::string&) override { refuse(); }
  int64_t max(int64_t) override { refuse(); }
  std::unique_ptr<Comm> split(int) override { refuse(); }
  void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  [[noreturn]] static void refuse() { fail(Kind::kBug, "a planned group of ranks was asked to communicate"); }
  int size_;
  bool nccl_;
};

}  // namespace

std::unique_ptr<Comm> make_planned_comm(int size, const Device& device) {
  return std::make_unique<PlannedComm>(size, !device.uses_host_memory());
}

}  // namespace tokamak
