// tokamak checkpoint import: makes a run from a Hugging Face model, to continue its training.
#include <algorithm>
#include <iostream>
#include <span>

#include "base/file.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/run_context.h"
#include "interop/import_hf.h"

namespace tokamak::cli {

namespace {

class Import : public Command {
 public:
  explicit Import(CLI::App* parser) {
    parser->add_option("--from", format_, "hf: a Hugging Face directory")->required()->check(CLI::IsMember({"hf"}));
    parser
        ->add_option("--config", options_.config,
                     "YAML of the new run; the imported model replaces its section 'model'")
        ->type_name("FILE");
    parser->add_option("DIR", directory_, "directory with config.json and safetensors")->required();
    parser->add_option("OUT", out_, "run directory to create; must not exist")->required();
    parser->add_option("overrides", options_.overrides, "KEY=VALUE over the run's config");
    parser->footer(
        "  tokamak checkpoint import --from hf Llama-3.2-1B runs/mine\n"
        "  tokamak train runs/mine/config.yaml 'data.sources=[{path: datasets/train}]' training.max_steps=20000\n\n"
        "Architectures: Llama, Mistral, Ministral, Qwen2, Qwen3, SmolLM3. Pickle files are not read.");
  }

  int run() override {
    const StopSignal stop;
    return run_in_world([&](World& world) {
      if (world.size() > 1) fail(Kind::kConfig, str("import runs on one rank, not ", world.size()));
      const HfModel model = HfModel::open(directory_);
      for (const std::string& tensor : model.left_out()) log::info("left out: ", tensor);
      constexpr size_t kMostKeys = 20;
      const std::vector<std::string>& unused = model.description().unused;
      for (const std::string& key : std::span(unused).first(std::min(unused.size(), kMostKeys))) {
        log::warning(directory_, "/config.json: ", model.description().architecture, " does not use the key '",
                     printable(key), "', and neither does Tokamak");
      }
      if (unused.size() > kMostKeys) log::warning("nor ", unused.size() - kMostKeys, " more keys");
      ProgressLines lines;
      const ImportReport report = import_hf(model, options_, out_, [&](int64_t done, int64_t total) {
        expect_no_stop(stop);
        lines.at(done, total, "");
      });
      if (!report.tokenizer) warn_without_tokenizer();
      std::cout << out_ << ": " << model.description().architecture << ", " << human_count(double(report.parameters))
                << " parameters from " << format_of(model.type()).name << ", " << human_bytes(report.bytes) << ", in "
                << human_duration(lines.seconds()) << "; " << out_ << "/config.yaml needs data and training\n";
      return 0;
    });
  }

 private:
  void warn_without_tokenizer() const {
    log::warning(directory_,
                 " has no tokenizer.model and no tokenizer.json, so Tokamak cannot tokenize or print text of this "
                 "model. It can train on ids from another tokenizer program; export with --tokenizer ",
                 directory_);
  }

  std::string format_, directory_, out_;
  ImportOptions options_;
};

}  // namespace

void add_checkpoint_import(CLI::App& checkpoint, Commands& commands) {
  add_command<Import>(checkpoint, commands, "import", "make a run from a Hugging Face model, to continue its training");
}

}  // namespace tokamak::cli
