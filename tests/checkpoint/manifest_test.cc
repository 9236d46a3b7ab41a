#include "checkpoint/manifest.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/toy_state.h"

using namespace tokamak;

namespace {

CheckpointManifest example() {
  CheckpointManifest manifest;
  manifest.point = {{20, 2'000'000'000'000, 160}, -5, "run:\n  name: \"a\\b\"\n", R"({"epoch":2})"};
  manifest.tool = "0.1.0";
  manifest.created = "2026-01-31T12:34:56Z";
  manifest.incarnation = "node7.1";
  manifest.world_size = 4;
  manifest.kinds = {"master", "exp_avg"};
  manifest.units = {{"embedding", 64, {{"embed.weight", {7, 16}, 0, {}}, {"other", {}, 112, {}}}}, {"norms", 64, {}}};
  manifest.files = {{"rank-00000-of-00002.safetensors", 100, std::string(32, 'a')},
                    {"rank-00001-of-00002.safetensors", 101, std::string(32, 'b')}};
  return manifest;
}

std::string error_of(const std::string& text) {
  try {
    parse_manifest(text, "dir/manifest.json");
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    CHECK(std::string(error.what()).find("dir/manifest.json") != std::string::npos);
    return error.what();
  }
}

// The text with one part of it replaced, and a checksum that agrees.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const size_t body = text.find(",\"manifest\":") + 12;
  const std::string sum = xxh3_128_hex(std::as_bytes(std::span(text).subspan(body, text.size() - body - 2)));
  return text.replace(13, 32, sum);
}

std::string error_with(const std::string& from, const std::string& to) {
  return error_of(replaced(encode_manifest(example()), from, to));
}

}  // namespace

TEST_CASE("a manifest comes back as it was") {
  const CheckpointManifest before = example();
  const std::string encoded = encode_manifest(before);
  const CheckpointManifest after = parse_manifest(encoded, "m");
  CHECK(encode_manifest(after) == encoded);
  CHECK((after.point.state == before.point.state));
  CHECK(after.point.seed == -5);
  CHECK(after.point.config == before.point.config);
  CHECK(after.point.data == before.point.data);
  CHECK(after.units.at(0).params.at(1).shape.empty());
  CHECK(after.files.at(1).bytes == 101);
  CHECK(after.total_bytes() == 201);
  CHECK(after.param_elements() == 7 * 16 + 1);
}

TEST_CASE("every flipped bit and every cut of a manifest is found") {
  const std::string good = encode_manifest(example());
  int missed = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      missed += error_of(bad).empty();
    }
    missed += error_of(good.substr(0, at)).empty();
  }
  CHECK(missed == 0);
  CHECK(!error_of(good + " ").empty());
  CHECK(error_of(good).empty());
}

TEST_CASE("a manifest of a newer version is refused by name") {
  const std::string error = error_with("\"version\":1", "\"version\":3");
  CHECK_THAT(error, Catch::Contains("format version 3, written by Tokamak 0.1.0; this one reads up to 2"));
}

TEST_CASE("weights may have less than all kinds, and the optimizer may have started over: then it is of version 2") {
  CheckpointManifest manifest = example();
  CHECK_THAT(encode_manifest(manifest), Catch::Contains("\"version\":1,") && !Catch::Contains("optimizer_start"));
  manifest.units[0].params[1].kinds = {"master"};
  const CheckpointManifest read = parse_manifest(encode_manifest(manifest), "m");
  const std::vector<SavedParam>& params = read.units.at(0).params;
  CHECK((read.has(params.at(0), "master") && read.has(params.at(0), "exp_avg")));
  CHECK((read.has(params.at(1), "master") && !read.has(params.at(1), "exp_avg")));
  CHECK_THAT(encode_manifest(manifest), Catch::Contains("\"version\":2,"));
  manifest.units[0].params[1].kinds = {"master", "momentum"};
  CHECK_THAT(error_of(encode_manifest(manifest)), Catch::Contains("'other' has 'momentum', the checkpoint has not"));

  CheckpointManifest over = example();
  over.point.state.optimizer_start = 12;
  CHECK_THAT(encode_manifest(over), Catch::Contains("\"version\":2,"));
  CHECK((parse_manifest(encode_manifest(over), "m").point.state == over.point.state));
  CHECK(parse_manifest(encode_manifest(example()), "m").point.state.optimizer_start == 0);
}

TEST_CASE("outcomes of steps and samples that are left out are part of the state") {
  CheckpointManifest manifest = example();
  CHECK_THAT(encode_manifest(manifest), !Catch::Contains("outcomes") && !Catch::Contains("left_out"));
  RunState& state = manifest.point.state;
  state.outcomes = {.losses = {3.25, 1.0 / 3, 2},
                    .log_norms = {-0.5, 0, 1e-30},
                    .spiking = 2,
                    .spike_step = state.step - 2,
                    .spike_sample = 480};
  CHECK_THAT(encode_manifest(manifest), Catch::Contains("\"version\":1,"));
  CHECK((parse_manifest(encode_manifest(manifest), "m").point.state == state));
  // The first such checkpoints lack the spike's first step: it is two steps long.
  const std::string without = replaced(encode_manifest(manifest), str(R"("spike_step":)", state.step - 2, ","), "");
  CHECK(parse_manifest(without, "m").point.state.outcomes.spike_step == state.step - 1);
  state.left_out = {{12, 480, 96, "loss 9 is 40.1 deviations above 3"}, {15, 576, 12, "x"}};
  CHECK_THAT(encode_manifest(manifest), Catch::Contains("\"version\":2,"));  // an earlier program would read them
  CHECK((parse_manifest(encode_manifest(manifest), "m").point.state == state));
  state.outcomes.log_norms.pop_back();
  CHECK_THAT(error_of(encode_manifest(manifest)), Catch::Contains("it has not as many log_norms as losses"));
}

TEST_CASE("the progress of averages of the weights is part of the state") {
  CheckpointManifest manifest = example();
  CHECK_THAT(encode_manifest(manifest), !Catch::Contains("averages"));
  manifest.point.state.averages = {{"ema", 3, 16}, {"last.of-1", 1, 20}};
  CHECK((parse_manifest(encode_manifest(manifest), "m").point.state == manifest.point.state));
  manifest.point.state.averages[0].updates = 0;
  CHECK_THAT(error_of(encode_manifest(manifest)), Catch::Contains("updates' is 0"));
}

TEST_CASE("a manifest that contradicts itself is refused") {
  using Catch::Contains;
  CHECK_THAT(error_with("\"tokamak-checkpoint\"", "\"tokamak\""), Contains("format"));
  CHECK_THAT(error_with("\"step\":20", "\"step\":-1"), Contains("'step' is -1"));
  CHECK_THAT(error_with("\"step\":20", "\"step\":2.5"), Contains("'step' is 2.5"));
  CHECK_THAT(error_with("\"step\":20", "\"step\":18446744073709551615"), Contains("'step' is 18446744073709551615"));
  CHECK_THAT(error_with("\"step\":20,", ""), Contains("'step' is missing"));
  CHECK_THAT(error_with("\"tool\":\"0.1.0\"", "\"tool\":1"), Contains("'tool' is 1; expected a string"));
  CHECK_THAT(error_with("[7,16]", "[8,16]"), Contains("'other' overlaps"));
  CHECK_THAT(error_with("[7,16]", "[4611686018427387904,16]"), Contains("'embed.weight' is too large"));
  CHECK_THAT(error_with("[7,16]", "[7,-16]"), Contains("'units[0].params[0].shape[1]' is -16"));
  CHECK_THAT(error_with("\"slice\":64", "\"slice\":56"), Contains("2 slices of unit 'embedding' do not hold its 113"));
  CHECK_THAT(error_with("\"begin\":112", "\"begin\":9223372036854775807"), Contains("'other' is too large"));
  CHECK_THAT(error_with("\"other\"", "\"embed.weight\""), Contains("'embed.weight' comes twice"));
  CHECK_THAT(error_with("\"rank-00000-of-00002.safetensors\"", "\"../other\""),
             Contains("'../other' is not a file name"));
  for (const std::string& sum : {std::string(31, 'a'), std::string(32, 'g'), "\\u001b" + std::string(26, 'a')}) {
    CHECK_THAT(error_with(std::string(32, 'a'), sum), Contains("'files[0].xxh3_128'") && Contains("32 hexadecimal"));
  }
}
