#include "train/run_data.h"

#include "base/error.h"
#include "data/stores/source.h"

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
                    std::span<const SourceOptions> sources, int64_t samples = 0) {
  return named(key, [&] { return SampleSource(options, sources, config.run.seed, config.model.vocab_size, samples); });
}

int64_t samples_of(const RunTable& table) { return table.at(table.total_steps() + 1).samples; }

}  // namespace

Manifest read_first_manifest(const RunConfig& config) {
  return named("data.sources", [&] { return read_source_manifest(config.data.sources.at(0)); });
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const std::string& directory, const Manifest& data) {
  if (data.tokenizer.file.empty()) return nullptr;
  return load_tokenizer(data.tokenizer.path_in(directory), {specials_policy_of(data.tokenizer.hash), ""});
}

RunData::RunData(const RunConfig& config, const RunTable& table)
    : train(opened("data.sources", config, config.data, config.data.sources, samples_of(table))) {
  train.check_epochs(samples_of(table), config.data.max_epochs);
  if (config.data.validation.empty()) return;

  DataOptions in_order = config.data;
  in_order.order = SampleOrder::kSequential;
  in_order.packing = Packing::kWindows;
  in_order.shuffle_block = 0;
  validation.emplace(opened("data.validation", config, in_order, config.data.validation));
  if (validation->tokenizer().hash != train.tokenizer().hash) {
    fail(Kind::kData,
         str("data.validation ", config.data.validation[0].path, " was made with tokenizer ",
             validation->tokenizer().hash, ", data.sources ", config.data.sources[0].path, " with ",
             train.tokenizer().hash),
         "tokenize both with the same tokenizer");
  }
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
