#include "comm/plan_comm.h"

#include <cstdlib>

#include "base/error.h"
#include "comm/data_comm.h"
#include "comm/exchange.h"

namespace tokamak {

namespace {

class PlanComm : public Comm {
 public:
  PlanComm(int size, bool nccl, GroupStreams streams) : size_(size), nccl_(nccl), streams_(streams) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  int64_t scratch_elements(int64_t slice, DType dtype) const override {
    return nccl_ ? nccl_scratch_elements(size_, slice, dtype) : host_scratch_elements(size_, slice);
  }
  int64_t reserve_bytes() const override {
    if (!nccl_ || size_ == 1) return 0;
    return (streams_ == GroupStreams::kTwo ? kNcclCommunicators : 1) * kNcclReserveBytes;
  }
  void do_barrier() override { refuse(); }
  void do_broadcast(std::string&, int) override { refuse(); }
  std::vector<std::string> do_gather_all(const std::string&) override { refuse(); }
  int64_t do_max(int64_t) override { refuse(); }
  std::unique_ptr<Comm> do_split(int) override { refuse(); }
  std::unique_ptr<Comm> do_split_by(const std::function<int(int rank)>& color, GroupStreams streams) override {
    int members = 0;
    for (int r = 0; r < size_; ++r) members += color(r) == color(0);
    return std::make_unique<PlanComm>(members, nccl_, streams);
  }

 protected:
  void do_all_gather(Stream&, Tensor, Tensor) override {}
  void do_reduce_scatter(Stream&, const ReduceScatter&) override {}
  void do_exchange(Stream&, std::span<const Transfer>, std::span<const Transfer>) override {}
  void do_all_reduce(Stream&, Tensor) override {}

 private:
  [[noreturn]] static void refuse() { fail(Kind::kBug, "the ranks of a plan were asked to communicate"); }
  int size_;
  bool nccl_;
  GroupStreams streams_;
};

}  // namespace

std::unique_ptr<Comm> make_plan_comm(int size, const Device& device) {
  return std::make_unique<PlanComm>(size, !device.uses_host_memory(), GroupStreams::kTwo);
}

}  // namespace tokamak
