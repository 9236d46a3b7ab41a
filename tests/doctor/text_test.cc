// The doctor looks at text among the sources without tokenizing it, and at the space for what it becomes.
#include "base/file.h"
#include "data/prepare/text_sources.h"
#include "doctor/checks.h"
#include "doctor/planted.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "tests/data/foreign_files.h"
#include "tests/tokenizer/hf_files.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

// A tokenizer of bytes and 100 documents of 9 bytes, in a directory.
SourceOptions write_text_source(const std::string& directory) {
  write_file(directory + "/tokenizer.json",
             byte_level_json({}, {},
                             R"([{"id":256,"content":"<eos>","special":true,"single_word":false,)"
                             R"("lstrip":false,"rstrip":false,"normalized":false}])"));
  write_file(directory + "/tokenizer_config.json", R"({"eos_token":"<eos>"})");
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "{\"text\": \"nine byte\"}\n";
  write_file(directory + "/web.jsonl", lines);
  SourceOptions source = source_at(directory + "/web.jsonl");
  source.tokenizer = directory;
  return source;
}

}  // namespace

RANKS_CASE("text that no run has tokenized is taken out, judged by a sample, and nothing is written") {
  const TempDir own;
  const std::string directory = shared_path(world.comm(), own);
  if (world.rank() == 0) write_text_source(directory);
  world.comm().barrier();
  RunConfig config;
  config.data.cache = directory + "/cache";
  config.data.max_epochs = 1;
  SourceOptions source = source_at(directory + "/web.jsonl");
  source.tokenizer = directory;
  SourceOptions tokens = source_at("tokens");
  tokens.max_epochs = 1;
  config.data.sources = {tokens, source};
  const std::vector<SourceOptions> text = take_out_text(config);
  REQUIRE((text.size() == 1 && config.data.sources.size() == 1));
  CHECK((text[0].path == source.path && config.data.sources[0].path == "tokens"));
  CHECK((config.data.max_epochs == 0 && config.data.sources[0].max_epochs == 0));

  const RankHosts peers(std::vector<std::string>(static_cast<size_t>(world.size()), "n1"));
  const auto judged = [&](int64_t free) {
    CheckResult result{.name = "data", .kind = Kind::kData};
    judge_text(result, world.comm(), peers, config, text, [&](const std::string& path) {
      CHECK(path == directory);
      return free;
    });
    return result;
  };
  // 10 tokens of 2 bytes and 20 bytes of index, a document.
  const CheckResult enough = judged(4000);
  CHECK(enough.status == Status::kOk);
  CHECK(enough.ranks.front().number("estimated_tokens") == 1000);
  CHECK(enough.value.find("about 1.00K tokens, 3.91 KiB") != std::string::npos);
  const CheckResult full = judged(3999);
  CHECK(full.status == Status::kFail);
  CHECK(says(full, "where 3.91 KiB are free"));
  CHECK(full.notes.front().host.empty());
  CHECK_FALSE(exists(config.data.cache));
}

TEST_CASE("text that a run has tokenized is replaced by its data set, and the limits of epochs stay") {
  const TempDir dir;
  RunConfig config;
  config.data.cache = dir.file("cache");
  config.data.max_epochs = 3;
  config.data.validation = {write_text_source(dir.path())};
  const TextSource text = find_text_source(config.data.validation[0], config.data.cache);
  make_data_set(config.data.validation[0], text, "test", [](const TokenizeProgress&) {});
  CHECK(take_out_text(config).empty());
  REQUIRE(config.data.validation.size() == 1);
  CHECK(config.data.validation[0].path == text.data_set);
  CHECK(config.data.max_epochs == 3);
}
