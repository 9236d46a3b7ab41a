#include "plan/step_record.h"

#include <algorithm>

#include "base/strings.h"
#include "train/random_batch.h"
#include "train/step.h"

namespace tokamak {

namespace {

constexpr double kLr = 1e-4;

OperationValue copy_of(const OpArguments& arguments) {
  return std::visit(
      [](auto pointer) -> OperationValue {
        if constexpr (std::is_same_v<decltype(pointer), std::monostate>) {
          return {};
        } else {
          return *pointer;
        }
      },
      arguments);
}

// y = hidden w^T and, with a gradient, dx = dy w and dw = dy^T hidden, in chunks of at most chunk.rows.
void add_head(std::vector<RecordedGemm>& gemms, const LinearCrossEntropy& head, int64_t count, const HeadChunk& chunk) {
  const int64_t n = head.hidden.dim(0), vocab = head.weight.dim(0), most = chunk.rows;
  const auto add = [&](const char* label, Gemm call, int64_t times) {
    call.label = label;
    gemms.push_back({label, call, times});
  };
  for (const auto& [rows, chunks] : {std::pair{most, n / most}, std::pair{n % most, int64_t{1}}}) {
    if (rows == 0 || chunks == 0) continue;
    const int64_t times = count * chunks;
    const Tensor hidden = head.hidden.rows(0, rows);
    // Logits are in the workspace, which no operand names; the record uses the targets' address for them.
    const Tensor logits(head.targets.data(), chunk.logits, {rows, vocab});
    const Tensor dlogits(head.targets.data(), head.hidden.dtype(), {rows, vocab});
    add("head forward", {.a = hidden, .b = head.weight, .c = logits, .trans_b = Transpose::kYes}, times);
    if (!head.dhidden) continue;
    add("head dx", {.a = dlogits, .b = head.weight, .c = head.dhidden.rows(0, rows)}, times);
    add("head dw",
        {.a = dlogits, .b = hidden, .c = head.dweight, .trans_a = Transpose::kYes, .write = Write::kAccumulate}, times);
  }
}

bool alike(const RecordedGemm& x, const RecordedGemm& y) {
  return x.name == y.name && x.m() == y.m() && x.n() == y.n() && x.k() == y.k();
}

}  // namespace

double StepRecord::flops() const {
  double sum = 0;
  for (const Distinct& call : calls) sum += double(call.count) * call.flops;
  return sum;
}

double StepRecord::exchanged() const {
  double sum = 0;
  for (const Distinct& call : calls) sum += double(call.count) * call.exchanged;
  return sum;
}

void StepRecorder::begin(Stream& stream, const Call& call) {
  std::string text = call.text();
  // The text does not say that an exchange keeps some of its tensors on this rank, or that attention has a window.
  const std::string key = str(text, ", ", call.ranks, " ranks, stride ", call.stride, ", sends ",
                              static_cast<int64_t>(call.exchanged), ", ", static_cast<int64_t>(call.flops), " FLOPs");
  const auto [known, is_new] = calls_.try_emplace(key, std::ssize(record_.calls));
  if (is_new) {
    record_.calls.push_back({call.kind, call.name, call.title(), std::move(text), call.flops, call.bytes(),
                             call.exchanged, call.received, call.ranks, call.stride, copy_of(call.arguments)});
  }
  ++record_.calls[known->second].count;
  record_.entries.push_back({StepRecord::What::kCall, number_of(stream), known->second});
}

void StepRecorder::recorded(Stream& stream, const Event& event) {
  record_.entries.push_back({StepRecord::What::kRecord, number_of(stream), number_of(event)});
}

void StepRecorder::waited(Stream& stream, const Event& event) {
  record_.entries.push_back({StepRecord::What::kWait, number_of(stream), number_of(event)});
}

int StepRecorder::number_of(const Stream& stream) {
  const auto [known, is_new] = streams_.try_emplace(&stream, static_cast<int>(streams_.size()));
  if (is_new) record_.streams.emplace_back(stream.name());
  return known->second;
}

int64_t StepRecorder::number_of(const Event& event) {
  return events_.try_emplace(&event, std::ssize(events_)).first->second;
}

StepRecord record_step(Engine& engine, const BatchShape& shape, const RecordOptions& options) {
  RandomBatch batch(shape, {.vocab = engine.model().config().vocab_size,
                            .rank = engine.mesh().data().rank(),
                            .mean_document = options.mean_document});
  const StepSettings settings = {.lr = kLr, .micro_batches = shape.micro_batches()};
  for (int64_t i = 0; i < options.before; ++i) run_step(engine, batch.step(), settings);
  StepRecorder recorder;
  const Observation watched(*engine.backend().device, recorder);
  run_step(engine, batch.step(), settings);
  return recorder.record();
}

std::vector<RecordedGemm> gemms_of(const StepRecord& record, const Ops& ops) {
  std::vector<RecordedGemm> all, gemms;
  for (const StepRecord::Distinct& call : record.calls) {
    if (const auto* gemm = std::get_if<Gemm>(&call.arguments)) all.push_back({gemm->label, *gemm, call.count});
    if (const auto* head = std::get_if<LinearCrossEntropy>(&call.arguments)) {
      const Tensor& hidden = head->hidden;
      add_head(all, *head, call.count, ops.head_chunk(hidden.dim(0), head->weight.dim(0), hidden.dtype()));
    }
  }
  // The first gradient of a weight overwrites and later ones accumulate. Both count as one GEMM, the more frequent.
  for (const RecordedGemm& gemm : all) {
    const auto known = std::find_if(gemms.begin(), gemms.end(), [&](const auto& g) { return alike(g, gemm); });
    if (known == gemms.end()) {
      gemms.push_back(gemm);
    } else {
      if (gemm.count > known->count) known->call = gemm.call;
      known->count += gemm.count;
    }
  }
  return gemms;
}

}  // namespace tokamak
