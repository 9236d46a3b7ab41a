#include "backend/plan_device.h"

#include <sys/mman.h>

#include "base/error.h"

namespace tokamak {

namespace {

class PlanEvent final : public Event {
 public:
  void synchronize() override {}
};

class PlanStream final : public Stream {
 protected:
  void do_record(Event&) override {}
  void do_wait(const Event&) override {}
  void do_synchronize() override {}
};

class PlanTimestamp final : public Timestamp {
 public:
  void record(Stream&) override {}
  std::optional<double> seconds_since(const Timestamp&) const override { return std::nullopt; }
};

class PlanDevice final : public Device {
 public:
  explicit PlanDevice(PlannedDevice device) : planned_(std::move(device)) {}

  // Reserved addresses without memory: any access ends the process with SIGSEGV.
  std::byte* allocate(int64_t bytes, MemoryKind) override {
    void* memory =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail_errno(Kind::kDevice, str("no addresses for a plan of ", human_bytes(bytes)));
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, int64_t bytes, MemoryKind) noexcept override {
    munmap(memory, static_cast<size_t>(bytes));
  }

  std::string description() const override { return planned_.description; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<PlanEvent>(); }
  std::unique_ptr<Timestamp> make_timestamp() override { return std::make_unique<PlanTimestamp>(); }
  bool uses_host_memory() const override { return planned_.uses_host_memory; }
  int64_t total_bytes() const override { return INT64_MAX; }
  int64_t available_bytes() const override { return INT64_MAX; }
  int64_t used_bytes() const override { return 0; }
  int64_t startup_bytes() const override { return planned_.startup_bytes; }
  int64_t reserve_bytes() const override { return planned_.reserve_bytes; }
  int64_t peak_bytes() const override { return 0; }
  double peak_flops(DType) const override { return 0; }

 protected:
  std::unique_ptr<Stream> do_make_stream(StreamPriority) override { return std::make_unique<PlanStream>(); }
  void do_copy_to_device(Stream&, const void*, Tensor) override {}
  void do_copy_to_host(Stream&, Tensor, void*) override {}

 private:
  PlannedDevice planned_;
};

class PlanOps final : public Ops {
 public:
  explicit PlanOps(std::unique_ptr<Ops> sizes) : sizes_(std::move(sizes)) {}

  int64_t workspace_bytes(const Workload& workload) const override { return sizes_->workspace_bytes(workload); }
  HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const override {
    return sizes_->head_chunk(tokens, vocab, act);
  }
  int64_t rows_behind_attention() const override { return sizes_->rows_behind_attention(); }
  int64_t document_table_entries(const Workload& workload) const override {
    return sizes_->document_table_entries(workload);
  }

 protected:
#define TOKAMAK_NO_OP(name, Args) \
  void do_##name(Stream&, const Args&) override {}
  TOKAMAK_OPS(TOKAMAK_NO_OP)
#undef TOKAMAK_NO_OP

 private:
  std::unique_ptr<Ops> sizes_;
};

}  // namespace

Backend make_plan_backend(const PlannedDevice& device, std::unique_ptr<Ops> sizes) {
  return {std::make_unique<PlanDevice>(device), std::make_unique<PlanOps>(std::move(sizes))};
}

}  // namespace tokamak
