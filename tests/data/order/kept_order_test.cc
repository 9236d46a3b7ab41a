// The order of the samples and the data's state are those that existing checkpoints were trained with.
#include "base/hash.h"
#include "data/sample_source.h"
#include "support/temp_dir.h"
#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

std::string hash_of_stream(const SampleSource& source, int64_t samples) {
  Hasher hasher;
  Sample sample;
  for (int64_t k = 0; k < samples; ++k) {
    source.read(k, sample);
    hasher.update(std::as_bytes(std::span(sample.tokens)));
    hasher.update(std::as_bytes(std::span(sample.document_starts)));
  }
  return hasher.hex128();
}

}  // namespace

TEST_CASE("shuffled and sequential samples and their state are those of earlier versions") {
  const TempDir dir;
  write_dataset(dir.file("a"), numbered_documents(900, 40), {65000, 5000});
  write_dataset(dir.file("b"), numbered_documents(300, 90), {65000, 9000});
  const std::vector<SourceOptions> sources = {{dir.file("a"), 0.7}, {dir.file("b"), 0.3}};
  const SampleSource shuffled(data_options(16), sources, 3, 65000);
  const SampleSource sequential(data_options(16, SampleOrder::kSequential), sources, 3, 65000);
  CHECK(hash_of_stream(shuffled, 4000) == "50899d4cc0aa760cd8c0838c90c2e6a6");  // several epochs
  CHECK(hash_of_stream(sequential, 4000) == "20784b2f437a7a763e5f01c4130a0b0a");
  CHECK(shuffled.state_json(77) == R"({"next_sample":77,"order":"shuffled","seed":3,"sequence_length":16,)"
                                   R"("sources":[{"dataset":"d393e07a2c66a1ed9d0139bee6baa4c6","parts":7},)"
                                   R"({"dataset":"245c4fe690beac3c29d2f90feb4584cb","parts":3}],)"
                                   R"("tokenizer":"00112233445566778899aabbccddeeff","version":1})");
}
