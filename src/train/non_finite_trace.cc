#include "train/non_finite_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backend/finite_check.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/process.h"
#include "optim/grad_norm.h"
#include "tensor/unit_layout.h"
#include "train/run_data.h"
#include "train/step.h"

namespace tokamak {

namespace {

constexpr double kMostSeconds = 600;
constexpr int64_t kTokensAround = 40;  // of the text that is shown, on either side of the token
constexpr size_t kMostText = 400;      // bytes

std::string index_text(const Shape& shape, int64_t flat) {
  std::vector<std::string> indices(static_cast<size_t>(shape.rank()));
  for (size_t axis = indices.size(); axis-- > 0;) {
    indices[axis] = str(flat % shape[static_cast<int>(axis)]);
    flat /= shape[static_cast<int>(axis)];
  }
  return str("[", join(indices, ", "), "]");
}

// An element of a named weight, in this rank's shard.
struct WeightElement {
  std::string text;  // "gradient of model.norm.weight[5]"
  int64_t unit = 0;
  int64_t offset = 0;  // in the unit's slice
};

std::optional<WeightElement> weight_element(ShardedParameters& parameters, const void* address) {
  const std::pair<const char*, Tensor> shards[] = {
      {"", parameters.weights()}, {"master of ", parameters.master()}, {"gradient of ", parameters.gradients()}};
  for (const auto& [prefix, shard] : shards) {
    const int64_t bytes = static_cast<const std::byte*>(address) - static_cast<const std::byte*>(shard.data());
    if (bytes < 0 || bytes >= shard.bytes()) continue;
    const int64_t element = bytes / size_of(shard.dtype());
    for (int64_t u = 0; const Unit& unit : parameters.table().units) {
      const int64_t offset = element - parameters.slice_begin(u), slice = parameters.slice_elements(u);
      const int64_t flat = parameters.mesh().shard().rank() * slice + offset;
      for (const FlatParam& param : flat_params(unit)) {
        if (offset < 0 || offset >= slice || flat < param.begin || flat >= param.end) continue;
        return WeightElement{str(prefix, param.param->name, index_text(param.param->shape, flat - param.begin)), u,
                             offset};
      }
      ++u;
    }
  }
  return std::nullopt;
}

double value_at(Engine& engine, Tensor tensor, int64_t index) {
  const Tensor one = tensor.flat(index, index + 1);
  float f32 = 0;
  bf16 half;
  void* const host = one.dtype() == DType::kBF16 ? static_cast<void*>(&half) : &f32;
  engine.backend().device->copy_to_host(engine.compute(), one, host);
  engine.compute().synchronize();
  return one.dtype() == DType::kBF16 ? static_cast<float>(half) : f32;
}

// "master nan, exp_avg 0.1, exp_avg_sq nan": which of them has carried a value that is not finite into the next.
std::string state_text(Engine& engine, const WeightElement& element) {
  std::vector<std::string> texts;
  for (const StateTensor& part : engine.state()) {
    const StateUnit& unit = part.units.at(static_cast<size_t>(element.unit));
    if (part.in_host_memory || !unit.is_held()) continue;
    texts.push_back(str(part.name, " ", value_at(engine, part.tensor, unit.begin + element.offset)));
  }
  return join(texts, ", ");
}

// The token of the micro-batch that an element belongs to, if the operand has a row or a column for each token.
std::optional<int64_t> token_of(const NonFinite& found, int64_t tokens) {
  for (const char* weight : {"weight", "q_weight", "k_weight", "dweight", "dq_weight", "dk_weight", "dtable", "table",
                             "b", "b^T", "bias", "sums", "control"}) {
    if (found.operand == weight) return std::nullopt;
  }
  const Shape& shape = found.tensor.shape();
  const bool is_dw = found.operand == "c" && found.operation.size() > 3 && found.operation.ends_with(" dw");
  if (shape.rank() == 0 || is_dw) return std::nullopt;
  if (shape[0] % tokens == 0 && shape.count() > 0) return found.index / (shape.count() / shape[0]) % tokens;
  if (shape.rank() == 2 && shape[1] == tokens) return found.index % tokens;  // lse
  return std::nullopt;
}

// The samples of a micro-batch.
struct MicroBatchSamples {
  int64_t first = 0, count = 0;
};

struct Reading {
  std::string sample, document, text;  // texts of the event
};

// Without a token, all samples were read; the first one's first document is shown.
Reading reading_of(const SampleSource& source, const MicroBatchSamples& samples, std::optional<int64_t> token) {
  const int64_t length = source.sequence_length(), position = token.value_or(0) % length;
  const int64_t sample = samples.first + token.value_or(0) / length;
  Sample read;
  source.read(sample, read);
  const Dataset& data = source.dataset(read.source);
  const auto next = std::upper_bound(read.document_starts.begin(), read.document_starts.end(), position);
  const auto document = (next - read.document_starts.begin()) - 1;
  const std::string which = token ? str(sample) : str(sample, " to ", sample + samples.count - 1);
  const bool one_range = read.ranges.size() == 1;
  // A packed row may end with tokens of no document. The last token of a range is no position.
  if (one_range ? position + 1 >= read.ranges.front().count : document >= std::ssize(read.ranges)) {
    return {.sample = str(which, " of ", data.directory(), ", in its padding"), .document = "", .text = ""};
  }
  const int64_t begin = read.document_starts[static_cast<size_t>(document)];
  const int64_t end = next == read.document_starts.end() ? length : *next;
  const int64_t place = one_range ? read.ranges.front().first + position
                                  : read.ranges.at(static_cast<size_t>(document)).first + position - begin;
  Reading reading{.sample = str(which, " of ", data.directory(), ", token ", place),
                  .document = str(document + 1, " of ", read.document_starts.size(), " in the sample"),
                  .text = ""};
  if (const auto tokenizer = load_tokenizer_of(data.directory(), data.manifest())) {
    const int64_t first = std::max(begin, position - kTokensAround), last = std::min(end, position + kTokensAround);
    reading.text = printable(tokenizer->decode(std::span(read.tokens).subspan(first, last - first)), kMostText);
  }
  return reading;
}

// The texts of a finding on this rank, then `detail`.
std::vector<NamedText> describe(Comm& comm, Engine& engine, const SampleSource& source, const NonFinite& found,
                                const MicroBatchSamples& samples) {
  const auto* address =
      static_cast<const std::byte*>(found.tensor.data()) + found.index * size_of(found.tensor.dtype());
  const std::optional<WeightElement> weight = weight_element(engine.parameters(), address);
  const std::string tensor = weight ? weight->text : found.operand + index_text(found.tensor.shape(), found.index);
  const std::string layer = found.section.layer < 0 ? "" : str(found.section.layer);
  const std::string state = weight ? state_text(engine, *weight) : "";
  std::vector<std::string> inputs;
  for (const NonFinite::Input& input : found.inputs) inputs.push_back(str(input.text, " up to ", input.greatest));
  Reading reading;
  if (samples.count > 0) {
    try {
      reading = reading_of(source, samples, token_of(found, samples.count * source.sequence_length()));
    } catch (const Error& error) {
      reading.sample = str(samples.first, " (", error.what(), ")");
    }
  }
  const std::string where = str(found.section.pass, layer.empty() ? "" : " of layer " + layer);
  std::string detail = str("rank ", comm.rank(), " (", host_name(), ")", where.empty() ? "" : ", " + where, ": ");
  detail += found.is_input ? str(tensor, " was ", found.value, " before ", found.operation)
                           : str(found.operation, " made ", tensor, " ", found.value);
  detail += str(" (", found.count, " of ", found.tensor.count(), " values)");
  if (!state.empty()) detail += "; its state: " + state;
  if (!found.is_input) detail += "; greatest magnitudes that went in: " + join(inputs, ", ");
  if (!reading.sample.empty()) detail += "; reading sample " + reading.sample;
  if (!reading.text.empty()) detail += str(", document ", reading.document, ": \"", reading.text, "\"");
  return {{"rank", str(comm.rank())},
          {"host", host_name()},
          {"pass", found.section.pass},
          {"layer", layer},
          {"operation", found.operation},
          {"tensor", tensor},
          {"value", str(found.value)},
          {"inputs", join(inputs, ", ")},
          {"state", state},
          {"sample", reading.sample},
          {"document", reading.document},
          {"text", reading.text},
          {"detail", detail}};
}

// The rank whose finding is the earliest in the pass; -1: none has one. A value that is bad before a call is earlier
// than what the call makes of it on another rank.
int first_to_find(Comm& comm, const std::optional<NonFinite>& found) {
  const std::string own = found ? str(2 * found->call + (found->is_input ? 0 : 1)) : "";
  int first = -1;
  int64_t least = 0;
  const std::vector<std::string> all = comm.gather_all(own);
  for (size_t r = 0; r < all.size(); ++r) {
    int64_t at = 0;
    if (all[r].empty() || std::from_chars(all[r].data(), all[r].data() + all[r].size(), at).ec != std::errc()) continue;
    if (first >= 0 && at >= least) continue;
    first = static_cast<int>(r);
    least = at;
  }
  return first;
}

}  // namespace

RunEvent trace_non_finite(Comm& comm, Engine& engine, const SampleSource& source, const TracedGradients& traced,
                          RunProgress* progress) {
  FiniteCheck check(engine.backend(), kMostSeconds);
  Loader loader(source, traced.samples);
  MicroBatchSamples samples;  // in which the check has found a value
  engine.compute().synchronize();
  engine.parameters().weights_changed();  // so that a damaged weight is found where it is gathered from
  {
    const Observation observed(*engine.backend().device, check);
    const auto next = [&] {
      const MicroBatch& batch = loader.next();
      if (progress != nullptr) progress->tick();
      if (!check.found()) samples = {batch.first_sample, batch.sequences};
      return view_of(batch);
    };
    compute_gradients(engine, next, loader.micro_batches_per_step());
    if (!check.found()) samples = {};  // what comes now belongs to all of them
    reduce_and_clip(engine.parameters(), engine.compute(), engine.sums(), engine.control(),
                    {.max_norm = traced.max_grad_norm});
    engine.compute().synchronize();
  }

  RunEvent event{"non_finite", "", {}};
  const int first = first_to_find(comm, check.found());
  if (first < 0) {
    event.detail = str("step ", traced.step, ": ");
    if (comm.max(check.gave_up() ? 1 : 0) == 0) {
      event.detail += "every value is finite when it is computed again";
    } else {
      event.detail += str("no value that is not finite in ", kMostSeconds, " s of checks");
      event.texts = {{"checks", "ended early"}};
    }
    return event;
  }
  if (comm.rank() == first) event.texts = describe(comm, engine, source, *check.found(), samples);
  int64_t texts = comm.max(std::ssize(event.texts));
  event.texts.resize(static_cast<size_t>(texts));
  for (NamedText& one : event.texts) {
    comm.broadcast(one.name, first);
    comm.broadcast(one.text, first);
  }
  event.detail = str("step ", traced.step, ": ", event.texts.back().text);
  event.texts.pop_back();
  return event;
}

}  // namespace tokamak
