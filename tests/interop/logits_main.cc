// print_logits MODEL IDS OUT: our logits of a Hugging Face directory or a checkpoint, for hf_test.py to compare with
// those of transformers. IDS is a safetensors file with I32 "ids" (B, T); OUT gets F32 "logits" (B, T, V). All in f32.
#include <cstdio>

#include "base/file.h"
#include "checkpoint/choose.h"
#include "config/load.h"
#include "interop/hf_model.h"
#include "model/golden.h"

using namespace tokamak;

namespace {

void write_logits(const std::string& path, const std::vector<float>& logits, std::vector<int64_t> shape) {
  std::vector<SafetensorsEntry> entries(1);
  entries[0] = {"logits", "F32", std::move(shape)};
  SafetensorsWriter writer(path, entries, {{"format", "pt"}}, Kind::kBug);
  writer.write(std::as_bytes(std::span(logits)));
  writer.finish();
}

void run(const std::string& model, const std::string& ids_path, const std::string& out) {
  const SafetensorsFile ids_file(ids_path, Kind::kData);
  const std::vector<int64_t> shape = ids_file.at("ids").shape;  // (B, T)
  const std::vector<int32_t> ids = ids_file.values<int32_t>("ids");
  const auto comm = make_single_comm();
  const SmallModelOptions options{.max_tokens = shape.at(0) * shape.at(1), .max_length = shape.at(1)};

  ModelConfig config;
  ReadParam read;
  std::optional<HfModel> hf;
  std::optional<CheckpointReader> checkpoint;
  if (exists(model + "/config.json")) {
    hf = HfModel::open(model);
    config = hf->config();
    read = hf->weights();
  } else {
    checkpoint = open_checkpoint_at(*comm, model);
    config = parse_config(checkpoint->manifest().point.config, model, {}).model;
    read = [&](const std::string& name, int64_t first, std::span<float> values) {
      checkpoint->read("master", name, first, values);
    };
  }
  SmallModel small(config, *comm, options);
  small.for_each_part(small.parameters.master(), [&](const Param& param, Tensor part, int64_t first) {
    read(param.name, first, std::span(part.as<float>(), static_cast<size_t>(part.count())));
  });
  small.parameters.masters_changed(*small.stream);
  const Sequences sequences(ids, ids, shape.at(1));
  std::vector<float> logits(ids.size() * static_cast<size_t>(config.vocab_size));
  small.model.logits(*small.stream, sequences.batch(), 0,
                     {logits.data(), DType::kF32, Shape{static_cast<int64_t>(ids.size()), config.vocab_size}});
  write_logits(out, logits, {shape.at(0), shape.at(1), config.vocab_size});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: print_logits MODEL IDS OUT\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "print_logits: %s\n", error.what());
    return error.exit_code();
  }
}
