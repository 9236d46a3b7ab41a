// print_megatron_samples DIR: the samples of data.order: megatron, for megatron_order_test.py to compare with those of
// megatron-core. Standard input: "T seed N split sources", split "all" for none; then "weight count" of each source and
// the lengths of its sequences. Writes the data sets DIR/0, DIR/1, ..., whose ids count up. Then it writes the tokens
// (T + 1) of samples 0 to N - 1 to standard output, as i32.
#include <cstdio>
#include <iostream>

#include "base/file.h"
#include "data/dataset_writer.h"
#include "data/sample_source.h"

using namespace tokamak;

namespace {

constexpr int32_t kVocabulary = 60000;

void write_source(const std::string& directory, const std::vector<int64_t>& lengths, int32_t first_id) {
  make_directories(directory, Kind::kData);
  Manifest head;
  head.vocab_size = kVocabulary;
  head.tokenizer = {"test", "00112233445566778899aabbccddeeff", ""};
  head.tool = "test";
  DatasetWriter writer(directory, head, int64_t{1} << 40);
  int32_t id = first_id;
  for (const int64_t length : lengths) {
    std::vector<int32_t> document;
    for (int64_t i = 0; i < length; ++i) document.push_back(1 + id++ % (kVocabulary - 1));
    writer.append(document);
  }
  writer.finish();
}

void run(const std::string& directory) {
  DataOptions options;
  options.order = SampleOrder::kMegatron;
  int64_t seed = 0, samples = 0, count = 0;
  std::cin >> options.sequence_length >> seed >> samples >> options.megatron_split >> count;
  if (options.megatron_split == "all") options.megatron_split.clear();
  for (int64_t i = 0; i < count; ++i) {
    double weight = 0;
    int64_t sequences = 0;
    std::cin >> weight >> sequences;
    std::vector<int64_t> lengths(sequences);
    for (int64_t& length : lengths) std::cin >> length;
    const std::string path = str(directory, "/", i);
    write_source(path, lengths, static_cast<int32_t>(7919 * i));
    options.sources.push_back({path, weight});
  }
  if (!std::cin) fail(Kind::kData, "standard input ends early");
  const SampleSource source(options, options.sources, seed, kVocabulary, samples);
  Sample sample;
  for (int64_t k = 0; k < samples; ++k) {
    source.read(k, sample);
    const auto bytes = std::as_bytes(std::span(sample.tokens));
    std::cout.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    run(argv[1]);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return error.exit_code();
  }
  return std::cout.flush() ? 0 : 1;
}
