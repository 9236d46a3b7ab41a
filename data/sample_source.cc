#include "data/sample_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/fields.h"
#include "base/printable.h"
#include "base/process.h"
#include "data/mixture.h"
#include "data/order/block_shuffle.h"
#include "data/order/megatron_blend.h"
#include "data/order/megatron_order.h"
#include "data/order/megatron_split.h"
#include "data/order/pack_table.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;

constexpr int kStateVersion = 1;
constexpr int64_t kLongestBlock = int64_t{1} << 40;

}  // namespace

SampleSource::SampleSource(const DataOptions& options, int64_t seed, StagePlace place)
    : files_(std::make_unique<FilePool>(FilePool::kDefaultLimit, options.read_retries)),
      options_(options),
      sequence_length_(options.sequence_length),
      seed_(seed),
      place_(std::move(place)) {
  check_options();
  if (place_.grid_length == 0) place_.grid_length = sequence_length_;
  TOKAMAK_CHECK(place_.grid_length % sequence_length_ == 0, "cells of ", place_.grid_length, " tokens, sequences of ",
                sequence_length_);
  const bool has_cells = options_.packing == Packing::kWindows && options_.order != SampleOrder::kMegatron;
  TOKAMAK_CHECK(has_cells || place_.grid_length == sequence_length_, "only windows have cells");
}

void SampleSource::check_options() const {
  if (sequence_length_ <= 0) {
    fail(Kind::kConfig, str("data.sequence_length is ", sequence_length_, "; it must be above zero"));
  }
  if (options_.read_retries < 0) {
    fail(Kind::kConfig, str("data.read_retries is ", options_.read_retries, "; it must be zero or more"));
  }
  const int64_t block = options_.shuffle_block;
  if (block < 0 || block > kLongestBlock) {
    fail(Kind::kConfig, str("data.shuffle_block is ", block, "; it must lie between 0 and ", kLongestBlock));
  }
  if (block > 0 && options_.order != SampleOrder::kShuffled) {
    fail(Kind::kConfig, str("data.shuffle_block is ", block, ", but data.order is ", enum_name(options_.order)),
         "only data.order: shuffled has blocks");
  }
  if (options_.packing == Packing::kBestFit && options_.order == SampleOrder::kMegatron) {
    fail(Kind::kConfig, "data.packing is best_fit, but data.order megatron has samples of its own",
         "take data.order: shuffled");
  }
}

SampleSource::SampleSource(const DataOptions& options, std::span<const SourceOptions> sources, int64_t seed,
                           int64_t vocab_size, int64_t run_samples, StagePlace place)
    : SampleSource(options, seed, std::move(place)) {
  arrange(open(sources, vocab_size), run_samples);
}

SampleSource::SampleSource(const DataOptions& options, std::vector<Dataset> datasets, std::span<const double> weights,
                           int64_t seed, int64_t run_samples)
    : SampleSource(options, seed) {
  for (Dataset& dataset : datasets) add(std::move(dataset));
  arrange(weights, run_samples);
}

SampleMemory SampleSource::planned_memory(const DataOptions& options, std::span<const SourceOptions> sources,
                                          int64_t seed, int64_t vocab_size, int64_t run_samples) {
  SampleSource planned(options, seed);
  const std::vector<double> weights = planned.open(sources, vocab_size);
  if (options.order != SampleOrder::kMegatron) {
    planned.arrange(weights, run_samples);
    return planned.memory();
  }
  return {planned.plan_megatron(weights, run_samples).bytes, planned.memory().sources};
}

SampleMemory SampleSource::memory() const {
  SampleMemory memory;
  if (schedule_) memory.order += schedule_->memory_bytes();
  for (const auto& order : orders_) memory.order += order->memory_bytes();
  for (const Dataset& dataset : datasets_) memory.sources += dataset.memory_bytes();
  return memory;
}

std::vector<double> SampleSource::open(std::span<const SourceOptions> sources, int64_t vocab_size) {
  std::vector<double> weights;
  for (const SourceOptions& source : sources) {
    add(open_dataset(source, vocab_size, *files_), source.max_epochs);
    weights.push_back(source.weight);
  }
  return weights;
}

void SampleSource::add(Dataset dataset, double max_epochs) {
  const TokenizerIdentity& its = dataset.manifest().tokenizer;
  if (!datasets_.empty() && its.hash != tokenizer().hash) {
    fail(Kind::kData,
         str("the data sets were made with different tokenizers: ", datasets_.front().directory(), " with ",
             tokenizer().name, " (", tokenizer().hash, "), ", dataset.directory(), " with ", its.name, " (", its.hash,
             ")"),
         "tokenize all sources with one tokenizer; data.sources[i].tokenizer names that of another program's files");
  }
  if (dataset.tokens() < place_.grid_length + 1 && options_.packing == Packing::kWindows) {
    const bool is_longest = place_.grid_length == sequence_length_;
    fail(Kind::kData, str("data set ", dataset.directory(), " has ", dataset.tokens(), " tokens; one sequence",
                          is_longest ? "" : " of the longest stage", " takes ",
                          is_longest ? "data.sequence_length + 1 = " : "", place_.grid_length + 1));
  }
  datasets_.push_back(std::move(dataset));
  max_epochs_.push_back(max_epochs);
}

void SampleSource::arrange(std::span<const double> weights, int64_t run_samples) {
  if (datasets_.empty()) fail(Kind::kConfig, "there is no data set to read: the list of sources is empty");
  set_past();
  if (options_.order == SampleOrder::kMegatron) return arrange_as_megatron(plan_megatron(weights, run_samples));
  std::vector<std::string> names;
  for (const Dataset& dataset : datasets_) names.push_back(dataset.directory());
  auto mixture = std::make_unique<Mixture>(weights, names);
  parts_ = mixture->parts();
  schedule_ = std::move(mixture);
  for (int64_t i = 0; i < sources(); ++i) {
    if (options_.packing == Packing::kBestFit) {
      PackTable table(dataset(i), sequence_length_, *files_);
      tables_.push_back(table.hash());
      orders_.push_back(std::make_unique<PackedOrder>(std::move(table), shuffle_of(i)));
    } else {
      orders_.push_back(std::make_unique<WindowOrder>(dataset(i).tokens(), place_.grid_length, shuffle_of(i)));
    }
  }
}

EpochShuffle SampleSource::shuffle_of(int64_t source) const {
  if (options_.order != SampleOrder::kShuffled) return EpochShuffle::none();
  const int64_t block = options_.shuffle_block, number = past_[source].number;
  return block > 0 ? EpochShuffle::blocks(seed_, number, block) : EpochShuffle::keyed(seed_, number);
}

void SampleSource::set_past() {
  for (int64_t i = 0; i < sources(); ++i) {
    const std::string& id = dataset(i).id();
    std::string key = id;
    for (int copy = 2; std::find(past_keys_.begin(), past_keys_.end(), key) != past_keys_.end(); ++copy) {
      key = str(id, " ", copy);
    }
    past_keys_.push_back(key);
    const auto next_number = static_cast<int64_t>(place_.past.size());
    past_.push_back(place_.past.emplace(key, SourcePast{next_number, 0}).first->second);
  }
}

int64_t SampleSource::cells_of(int64_t samples) const { return (samples + parts() - 1) / parts(); }

int64_t SampleSource::cells_read(int64_t source, int64_t cells_of_stream) const {
  return past_[source].cells + schedule_->count(source, cells_of_stream);
}

StagePlace SampleSource::next_in_stream(int64_t samples) const {
  return {place_.grid_length, place_.first_cell + cells_of(samples), place_.past};
}

StagePlace SampleSource::next_stream(int64_t samples) const {
  StagePlace next{place_.grid_length, 0, place_.past};
  for (int64_t i = 0; i < sources(); ++i) {
    next.past.at(past_keys_[i]).cells = cells_read(i, place_.first_cell + cells_of(samples));
  }
  return next;
}

SampleSource::MegatronPlan SampleSource::plan_megatron(std::span<const double> weights, int64_t run_samples) const {
  const int64_t samples = options_.megatron_samples > 0 ? options_.megatron_samples : run_samples;
  if (samples <= 0) fail(Kind::kConfig, "data.order is megatron, which depends on the samples of a run; here is none");
  if (seed_ < 0 || seed_ > std::numeric_limits<uint32_t>::max()) {
    fail(Kind::kConfig, str("run.seed is ", seed_, "; data.order megatron takes 0 to 2^32 - 1, as numpy does"));
  }
  for (int64_t i = 0; i < sources(); ++i) {
    if (weights[i] > 0 && std::isfinite(weights[i])) continue;
    fail(Kind::kConfig,
         str("the weight of source ", dataset(i).directory(), " is ", weights[i], "; it must be above zero"));
  }
  // Megatron normalises the weights of a blend twice. A single source is not blended.
  const bool blended = sources() > 1;
  MegatronPlan plan{.samples = samples, .weights = megatron_normalized(weights)};
  for (int64_t i = 0; i < sources(); ++i) {
    if (blended) plan.blend += megatron_share(samples, plan.weights[i]);
    plan.orders.push_back({.length = sequence_length_,
                           .samples = blended ? megatron_share_with_surplus(samples, plan.weights[i]) : samples,
                           .seed = static_cast<uint32_t>(seed_)});
    plan.bytes += MegatronOrder::planned_bytes(dataset(i).tokens(), dataset(i).sequences(), plan.orders.back());
  }
  plan.bytes += MegatronBlend::planned_bytes(plan.blend);
  return plan;
}

void SampleSource::arrange_as_megatron(const MegatronPlan& plan) {
  if (const int64_t available = available_memory_bytes(); plan.bytes > available) {
    fail(Kind::kDevice,
         str("data.order megatron needs ", human_bytes(plan.bytes), " on each rank for the arrays of ", plan.samples,
             " samples, but ", human_bytes(available), " are available"),
         "take data.order: shuffled, which has none, or fewer ranks on a node, or train for fewer tokens");
  }
  weights_ = plan.weights;
  megatron_samples_ = plan.samples;
  if (plan.blend > 0) {
    schedule_ = std::make_unique<MegatronBlend>(megatron_normalized(weights_), plan.blend);
  } else {
    schedule_ = std::make_unique<Mixture>(std::vector<double>{1.0}, std::vector<std::string>{dataset(0).directory()});
  }
  for (int64_t i = 0; i < sources(); ++i) {
    const std::vector<int32_t> lengths = dataset(i).sequence_lengths();
    const SequenceRange part = megatron_training_part(options_.megatron_split, std::ssize(lengths));
    auto order = std::make_unique<MegatronOrder>(lengths, part, plan.orders[i]);
    if (plan.blend > 0 && schedule_->count(i, plan.blend) > order->samples()) {
      fail(Kind::kConfig,
           str("the blend takes ", schedule_->count(i, plan.blend), " samples of ", dataset(i).directory(),
               ", which Megatron builds with ", order->samples(), " and then refuses"),
           "change the weights or the number of samples");
    }
    orders_.push_back(std::move(order));
  }
}

void SampleSource::read(int64_t k, Sample& out) const {
  const int64_t T = sequence_length_;
  const SourceSchedule::Draw draw = schedule_->at(place_.first_cell + k / parts());
  const SourceOrder& order = *orders_[draw.source];
  const Dataset& data = dataset(draw.source);
  out.source = draw.source;
  order.ranges(past_[draw.source].cells + draw.index, out.ranges);
  if (parts() > 1) out.ranges.assign(1, {out.ranges.front().first + k % parts() * T, T + 1});
  out.tokens.resize(T + 1);
  out.targets.resize(T);
  out.document_starts.clear();
  const bool rows = order.kind() == RangeKind::kRows;
  int64_t at = 0;
  for (const TokenRange& range : out.ranges) {
    TOKAMAK_CHECK(range.count > 0 && at + range.count <= T + 1, "sample ", k, ": ", range.count, " tokens at ", at);
    data.read(range.first, std::span(out.tokens).subspan(at, range.count));
    // Tokens before the range are not visible, even of the same document.
    if (at < T) out.document_starts.push_back(static_cast<int32_t>(at));
    if (order.kind() == RangeKind::kText) {
      data.document_starts(range.first, T, out.document_starts);
      if (out.document_starts.size() > 1 && out.document_starts[1] == 0) {
        out.document_starts.erase(out.document_starts.begin());
      }
    }
    if (rows) {  // the last token is only a target, and the next range replaces it
      std::copy_n(out.tokens.begin() + at + 1, range.count - 1, out.targets.begin() + at);
      at += range.count - 1;
    } else {
      at += range.count;
    }
  }
  if (rows) {
    // Padding is a segment of its own, without targets: no token attends to it, and the loss ignores it.
    std::fill(out.tokens.begin() + at, out.tokens.end(), std::max(data.manifest().eos_id, 0));
    std::fill(out.targets.begin() + at, out.targets.end(), -1);
    if (at < T) out.document_starts.push_back(static_cast<int32_t>(at));
    return;
  }
  TOKAMAK_CHECK(at == T + 1, "sample ", k, " has ", at, " tokens");
  std::copy(out.tokens.begin() + 1, out.tokens.end(), out.targets.begin());
}

int64_t SampleSource::tokens() const {
  int64_t sum = 0;
  for (const Dataset& dataset : datasets_) sum += dataset.tokens();
  return sum;
}

double SampleSource::epochs(int64_t source, int64_t samples) const {
  const int64_t read = cells_read(source, place_.first_cell + cells_of(samples));
  return static_cast<double>(read) / static_cast<double>(cells(source));
}

void SampleSource::check_epochs(int64_t samples, double max_epochs) const {
  const auto check = [&](int64_t i, double most, const std::string& key) {
    if (most <= 0 || epochs(i, samples) <= most) return;
    const int64_t taken = cells_read(i, place_.first_cell + cells_of(samples));
    fail(Kind::kConfig,
         str("the run would read data set ", dataset(i).directory(), " (data.sources[", i, "]) ",
             fixed(epochs(i, samples), 2), " times: ", taken * parts(), " of its ", samples, " samples (",
             fixed(100.0 * double(taken * parts()) / double(samples), 2), " %)",
             place_.past.empty() || past_[i].cells == 0 ? "" : " with those of earlier stages",
             ", where one epoch has ", windows(i), "; ", key, " is ", most),
         str("train for fewer tokens, give the source a smaller weight, add data or raise ", key));
  };
  for (int64_t i = 0; i < sources(); ++i) {
    check(i, max_epochs_[i], str("data.sources[", i, "].max_epochs"));
    check(i, max_epochs, "data.max_epochs");
  }
}

std::string SampleSource::state_json(int64_t next_sample) const {
  Json sources = Json::array();
  for (int64_t i = 0; i < this->sources(); ++i) {
    Json source = {{"dataset", dataset(i).id()}};
    if (!parts_.empty()) source["parts"] = parts_[i];
    sources.push_back(std::move(source));
  }
  // Everything that determines the tokens of sample k.
  Json state = {{"sources", sources}, {"order", enum_name(options_.order)}, {"sequence_length", sequence_length_}};
  if (options_.order == SampleOrder::kMegatron) {
    state["megatron"] = {{"samples", megatron_samples_}, {"split", options_.megatron_split}, {"weights", weights_}};
  }
  // These keys are absent where they change nothing, as in states of earlier versions.
  if (!tables_.empty()) state["packing"] = tables_;
  if (options_.shuffle_block > 0) state["shuffle_block"] = {options_.shuffle_block, kBlocksPerGroup};
  if (place_.grid_length != sequence_length_) state["grid_length"] = place_.grid_length;
  if (place_.first_cell > 0) state["first_cell"] = place_.first_cell;
  for (int64_t i = 0; i < this->sources(); ++i) {
    if (past_[i].number != i || past_[i].cells > 0) state["sources"][i]["past"] = {past_[i].number, past_[i].cells};
  }
  state["version"] = kStateVersion;
  state["tokenizer"] = tokenizer().hash;
  state["seed"] = seed_;
  state["next_sample"] = next_sample;
  return state.dump();
}

int64_t SampleSource::restore(const std::string& state_json) const {
  const std::string hint =
      "the order of the samples would change; resume with what the checkpoint was trained with, or start a new run";
  try {
    const Json saved = try_parse_json(state_json);
    if (saved.is_discarded()) {
      fail(Kind::kCheckpoint, str("the checkpoint's state of the data is no JSON: ", printable(state_json)));
    }
    const Json mine = Json::parse(this->state_json(0));
    const auto check = [&](const std::string& what, const Json& was, const Json& is) {
      if (was == is) return;
      fail(Kind::kData,
           str("the checkpoint was trained with another ", what, ": ", printable(was.dump()), "; now it is ",
               printable(is.dump())),
           hint);
    };
    check("format of the data's state", saved.at("version"), mine.at("version"));
    if (saved.at("tokenizer") != "") check("tokenizer", saved.at("tokenizer"), mine.at("tokenizer"));
    if (!saved.contains("sources")) return 0;
    const auto grid_of = [](const Json& state) { return state.value("grid_length", state.at("sequence_length")); };
    check("data.sequence_length", saved.at("sequence_length"), mine.at("sequence_length"));
    check("data.grid_length (auto: the longest stage's)", grid_of(saved), grid_of(mine));
    check("number of data sets", saved.at("sources").size(), mine.at("sources").size());
    for (size_t i = 0; i < datasets_.size(); ++i) {
      const std::string& path = datasets_[i].directory();
      const Json& was = saved.at("sources").at(i);
      const Json& is = mine.at("sources").at(i);
      check(str("data set in the place of ", path, " (source ", i, ", by its id)"), was.at("dataset"),
            is.at("dataset"));
      check(str("share of samples from ", path, " (parts of the mixture's period)"), was.value("parts", Json()),
            is.value("parts", Json()));
      check(str("history of ", path, " (its number, and the cells that earlier stages read)"),
            was.value("past", Json()), is.value("past", Json()));
    }
    check("first cell of the stage (what stages before it with the same sources read)",
          saved.value("first_cell", Json()), mine.value("first_cell", Json()));
    check("data.order", saved.at("order"), mine.at("order"));
    check(
        "number of samples, split or weights of data.order megatron (which decide its order; data.megatron_samples "
        "keeps the number)",
        saved.value("megatron", Json()), mine.value("megatron", Json()));
    check("data.packing (tables of rows, by their hashes)", saved.value("packing", Json()),
          mine.value("packing", Json()));
    check("data.shuffle_block (and blocks in a group)", saved.value("shuffle_block", Json()),
          mine.value("shuffle_block", Json()));
    check("run.seed", saved.at("seed"), mine.at("seed"));
    const auto next = whole_of<int64_t>(saved.at("next_sample"));
    if (next < 0) fail(Kind::kCheckpoint, str("the checkpoint's next sample is ", next));
    return next;
  } catch (const Json::exception& e) {
    fail(Kind::kCheckpoint, str("the checkpoint's state of the data cannot be read: ", printable(e.what()), " in ",
                                printable(state_json)));
  }
}

std::string state_before_any_data(const std::string& tokenizer_hash) {
  return Json{{"version", kStateVersion}, {"tokenizer", tokenizer_hash}}.dump();
}

std::string tokenizer_in_state(const std::string& state_json) {
  const Json state = try_parse_json(state_json);
  if (!state.is_object() || !state.contains("tokenizer") || !state["tokenizer"].is_string()) return "";
  return state["tokenizer"].get<std::string>();
}

}  // namespace tokamak
