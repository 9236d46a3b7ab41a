#include "train/run_data.h"

#include <algorithm>

#include "base/error.h"
#include "data/loader.h"
#include "data/stores/source.h"
#include "train/left_out.h"

namespace tokamak {

namespace {

// Errors of a data set name the key that it came from.
template <typename Read>
auto named(const char* key, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), str(key, ": ", error.what()), error.hint());
  }
}

SampleSource opened(const char* key, const RunConfig& config, const DataOptions& options,
                    std::span<const SourceOptions> sources, int64_t samples = 0, StagePlace place = {}) {
  return named(key, [&] {
    return SampleSource(options, sources, config.run.seed, config.model.vocab_size, samples, std::move(place));
  });
}

int64_t samples_of(const RunConfig& config) {
  const StageRow row = stage_rows(config).front();
  return row.options.steps * row.sequences();
}

SampleSource training_data(const RunConfig& config, StagePlace place) {
  SampleSource source =
      opened("data.sources", config, config.data, config.data.sources, samples_of(config), std::move(place));
  source.check_epochs(samples_of(config), config.data.max_epochs);
  return source;
}

// Whether rows with these sources are of one stream of data, which they read one after the other.
bool same_stream(const std::vector<SourceOptions>& a, const std::vector<SourceOptions>& b) {
  const auto same = [](const SourceOptions& x, const SourceOptions& y) {
    return x.path == y.path && x.weight == y.weight && x.format == y.format && x.delimiter_id == y.delimiter_id &&
           x.token_type == y.token_type && x.tokenizer == y.tokenizer;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

DataOptions validation_options(DataOptions data) {
  data.order = SampleOrder::kSequential;
  data.packing = Packing::kWindows;
  data.shuffle_block = 0;
  return data;
}

SampleMemory operator+(const SampleMemory& a, const SampleMemory& b) {
  return {a.order + b.order, a.sources + b.sources};
}

}  // namespace

Manifest read_first_manifest(const RunConfig& config) {
  return named("data.sources", [&] { return read_source_manifest(config.data.sources.at(0)); });
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const std::string& directory, const Manifest& data) {
  if (data.tokenizer.file.empty()) return nullptr;
  return load_tokenizer(data.tokenizer.path_in(directory), {specials_policy_of(data.tokenizer.hash), ""});
}

std::string DataMemory::text() const {
  return str(human_bytes(total()), " (read ahead ", human_bytes(read_ahead), ", arrays of the order ",
             human_bytes(samples.order), ", indexes, checksums and caches of the sources ",
             human_bytes(samples.sources), ")");
}

int64_t read_ahead_bytes(const RunConfig& config, int64_t micro_batch) {
  // A loader of training and, not at the same time, one of validation, or one or two of gradients computed again.
  const int64_t others = config.resilience.recompute_interval > 0 ? 2 : 1;
  return (1 + others) * Loader::planned_bytes({.micro_batch = micro_batch, .length = config.data.sequence_length});
}

DataMemory plan_data_memory(const RunConfig& config, int64_t micro_batch) {
  const auto planned = [&](const char* key, const DataOptions& options, std::span<const SourceOptions> sources) {
    return named(key, [&] {
      return SampleSource::planned_memory(options, sources, config.run.seed, config.model.vocab_size,
                                          samples_of(config));
    });
  };
  SampleMemory samples = planned("data.sources", config.data, config.data.sources);
  if (!config.data.validation.empty()) {
    samples = samples + planned("data.validation", validation_options(config.data), config.data.validation);
  }
  return {read_ahead_bytes(config, micro_batch), samples};
}

std::vector<StagePlace> stage_places(const RunConfig& config, const RunTable& table,
                                     const std::vector<LeftOut>& left_out) {
  const std::vector<StageRow>& rows = table.rows();
  if (rows.size() == 1 && config.data.grid_length.is_auto()) return {{}};
  int64_t grid = config.data.grid_length.value;
  if (grid == 0) {
    for (const StageRow& row : rows) grid = std::max(grid, row.options.sequence_length);
  }
  StagePlace place = {.grid_length = config.data.packing == Packing::kWindows ? grid : 0};
  std::vector<StagePlace> places;
  std::string tokenizer;
  for (size_t r = 0; r < rows.size(); ++r) {
    const RunConfig own = config_of_row(config, rows[r]);
    places.push_back(place);
    try {
      const SampleSource source = training_data(own, place);
      if (tokenizer.empty()) tokenizer = source.tokenizer().hash;
      if (source.tokenizer().hash != tokenizer) {
        fail(Kind::kData,
             str("its data was made with tokenizer ", source.tokenizer().hash, ", that of stages before it with ",
                 tokenizer),
             "tokenize all data with one tokenizer");
      }
      const bool goes_on = r + 1 < rows.size() && same_stream(own.data.sources, rows[r + 1].options.sources);
      const int64_t samples = samples_of(own) + LeftOutSamples(left_out, rows[r]).count();
      place = goes_on ? source.next_in_stream(samples) : source.next_stream(samples);
    } catch (const Error& error) {
      throw Error(error.kind(), str("stage '", rows[r].options.name, "': ", error.what()), error.hint());
    }
  }
  return places;
}

RunData::RunData(const RunConfig& config, StagePlace place) : train(training_data(config, std::move(place))) {
  if (config.data.validation.empty()) return;

  for (size_t i = 0; i < config.data.validation.size(); ++i) {
    if (const double most = config.data.validation[i].max_epochs; most != 0) {
      fail(Kind::kConfig, str("data.validation[", i, "].max_epochs is ", most, ", but no epochs are counted there"),
           "leave it out; it limits sources of data.sources");
    }
  }
  validation.emplace(opened("data.validation", config, validation_options(config.data), config.data.validation));
  if (validation->tokenizer().hash != train.tokenizer().hash) {
    fail(Kind::kData,
         str("data.validation ", config.data.validation[0].path, " was made with tokenizer ",
             validation->tokenizer().hash, ", data.sources ", config.data.sources[0].path, " with ",
             train.tokenizer().hash),
         "tokenize both with the same tokenizer");
  }
}

DataMemory RunData::memory(const RunConfig& config, int64_t micro_batch) const {
  const SampleMemory held_out = validation ? validation->memory() : SampleMemory();
  return {read_ahead_bytes(config, micro_batch), train.memory() + held_out};
}

std::string RunData::exceeded_epochs(const RunConfig& config, int64_t left_out) const {
  try {
    train.check_epochs(samples_of(config) + left_out, config.data.max_epochs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::optional<double> RunData::bits_per_byte(double validation_loss) const {
  if (!validation || validation->sources() > 1) return std::nullopt;
  return validation->dataset(0).manifest().bits_per_byte(validation_loss);
}

std::vector<std::string> RunData::trained_on() const {
  std::vector<std::string> found;
  for (int64_t v = 0; validation && v < validation->sources(); ++v) {
    for (int64_t t = 0; t < train.sources(); ++t) {
      const Dataset &held_out = validation->dataset(v), &trained = train.dataset(t);
      if (held_out.id() != trained.id()) continue;
      const bool one_place = held_out.directory() == trained.directory();
      found.push_back(str("data.validation ", held_out.directory(), " is ", one_place ? "" : "a copy of ",
                          "data.sources ", trained.directory()));
    }
  }
  return found;
}

}  // namespace tokamak
