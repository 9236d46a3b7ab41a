// Records a step: every operation, copy and collective in order, with its stream, and every event recorded and waited
// for. A real step yields the record while it runs. So does a step on a device that only plans (backend/plan_device.h),
// for any number of ranks on any machine. It is THE source of a step's FLOPs, bytes, GEMMs and messages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/observer.h"
#include "engine/engine.h"
#include "train/batch_shape.h"

namespace tokamak {

#define TOKAMAK_VALUE(name, Args) , Args
using OperationValue = std::variant<std::monostate TOKAMAK_OPS(TOKAMAK_VALUE)>;
#undef TOKAMAK_VALUE

struct StepRecord {
  // Calls that differ only in addresses.
  struct Distinct {
    CallKind kind = CallKind::kOperation;
    std::string name, title, text;                             // "gemm", "gemm qkv forward", with operands and shapes
    double flops = 0, bytes = 0, exchanged = 0, received = 0;  // of one call, see Call
    int ranks = 1, stride = 1;                                 // of a collective's group, see Call
    OperationValue arguments;                                  // of the first such call
    int64_t count = 0;
  };
  enum class What { kCall, kRecord, kWait };
  struct Entry {
    What what;
    int stream;     // in `streams`
    int64_t which;  // in `calls`; of an event: its number
  };

  std::vector<std::string> streams;
  std::vector<Distinct> calls;
  std::vector<Entry> entries;    // in the order in which the host enqueued them
  int64_t synchronizations = 0;  // how often the host waited for a stream

  double flops() const;
  double exchanged() const;  // bytes that this rank sends
};

class StepRecorder final : public Observer {
 public:
  void begin(Stream& stream, const Call& call) override;
  void end(Stream&, const Call&) override {}
  void recorded(Stream& stream, const Event& event) override;
  void waited(Stream& stream, const Event& event) override;
  void synchronized(Stream&) override { ++record_.synchronizations; }

  const StepRecord& record() const { return record_; }

 private:
  int number_of(const Stream& stream);
  int64_t number_of(const Event& event);

  StepRecord record_;
  std::map<const Stream*, int> streams_;
  std::map<const Event*, int64_t> events_;
  std::map<std::string, int64_t> calls_;  // by text, group, bytes sent and FLOPs
};

// Records one step of a committed engine on random tokens, after `before` others. The first step of an engine gathers
// weights that later ones find gathered.
struct RecordOptions {
  int64_t before = 1;
  int64_t mean_document = 0;  // RandomBatchOptions::mean_document
};
StepRecord record_step(Engine& engine, const BatchShape& shape, const RecordOptions& options = {});

struct RecordedGemm {
  std::string name;  // "qkv forward"
  Gemm call;         // with the addresses of the recorded step
  int64_t count = 0;

  int64_t m() const { return call.c.dim(0); }
  int64_t n() const { return call.c.dim(1); }
  int64_t k() const { return call.a.dim(call.trans_a == Transpose::kYes ? 0 : 1); }
  double flops() const { return 2.0 * double(m()) * double(n()) * double(k()); }
};

// Every GEMM of the record, including those of the head, which run in chunks of rows (Ops::head_chunk).
std::vector<RecordedGemm> gemms_of(const StepRecord& record, const Ops& ops);

}  // namespace tokamak
