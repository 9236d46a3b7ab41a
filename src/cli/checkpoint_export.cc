// tokamak checkpoint export: a checkpoint's weights in formats of other programs.
#include <iostream>

#include "checkpoint/choose.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/run_context.h"
#include "interop/export_gguf.h"
#include "interop/export_hf.h"

namespace tokamak::cli {

namespace {

// "5GB", "500MB": powers of 1000, as Hugging Face counts; a number alone is bytes.
int64_t parse_bytes(const std::string& text) {
  size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(end);
  const double scale = unit.empty() || unit == "B" ? 1
                       : unit == "KB"              ? 1e3
                       : unit == "MB"              ? 1e6
                       : unit == "GB"              ? 1e9
                                                   : 0;
  const double bytes = value * scale;
  if (end == 0 || !(bytes >= 1) || !(bytes <= 1e15)) {
    throw CLI::ValidationError("--max-shard-size " + text, "expected a size like 5GB or 500MB");
  }
  return static_cast<int64_t>(bytes);
}

class Export : public Command {
 public:
  explicit Export(CLI::App* parser) {
    parser->add_option("--to", format_, "hf: a Hugging Face directory; gguf: a file for llama.cpp")
        ->required()
        ->check(CLI::IsMember({"hf", "gguf"}));
    parser->add_option("--dtype", dtype_, "dtype of the weights; f16 only for gguf")
        ->check(CLI::IsMember({"bf16", "f32", "f16"}))
        ->capture_default_str();
    parser
        ->add_option_function<std::string>(
            "--max-shard-size", [this](const std::string& text) { options_.max_shard_bytes = parse_bytes(text); },
            "hf: largest safetensors file, like 5GB or 500MB")
        ->default_str("5GB");
    parser->add_option("--tokenizer", tokenizer_,
                       "tokenizer.model, tokenizer.json, directory of Hugging Face tokenizer files to copy, or none; "
                       "default: the run's own");
    add_weights(parser, weights_);
    parser->add_flag("--bos", options_.add_bos, "the tokenizer prepends its BOS token, as `data tokenize --bos` did");
    parser
        ->add_option("DIR", directory_,
                     "one checkpoint (.../checkpoints/step-00000020), or a directory of them, whose newest that "
                     "verifies is used")
        ->required();
    parser->add_option("OUT", out_, "directory or file to write; must not exist")->required();
    parser->footer(
        "  tokamak checkpoint export --to hf runs/mine/checkpoints mine-hf\n"
        "  tokamak checkpoint export --to hf --dtype f32 --max-shard-size 1GB runs/mine/checkpoints/step-00002000 out\n"
        "  tokamak checkpoint export --to gguf --dtype f16 runs/mine/checkpoints mine.gguf");
  }

  int run() override {
    const StopSignal stop;
    return run_in_world([&](World& world) {
      if (world.size() > 1) fail(Kind::kConfig, str("export runs on one rank, not ", world.size()));
      CheckpointReader reader = open_checkpoint_at(world.comm(), directory_);
      if (!weights_.empty()) reader.use_average(weights_);
      ExportSource source = make_export_source(std::move(reader), tokenizer_);
      log::info("exporting ", source.reader.directory(), " to ", out_);
      ProgressLines lines;
      const Progress progress = [&](int64_t done, int64_t total) {
        expect_no_stop(stop);
        lines.at(done, total, "");
      };
      options_.type = dtype_ == "f32" ? WeightType::kF32 : dtype_ == "f16" ? WeightType::kF16 : WeightType::kBF16;
      const auto export_to = format_ == "hf" ? export_hf : export_gguf;
      const ExportReport report = export_to(source, options_, out_, progress);
      std::cout << out_ << ": " << report.tensors << " tensors, " << format_of(options_.type).name << ", "
                << human_bytes(report.bytes) << " in " << report.weight_files
                << (report.weight_files == 1 ? " file" : " files") << ", step "
                << source.reader.manifest().point.state.step << ", in " << human_duration(lines.seconds()) << "\n";
      return 0;
    });
  }

 private:
  std::string format_, directory_, out_, tokenizer_, weights_;
  std::string dtype_ = "bf16";
  ExportOptions options_;
};

}  // namespace

void add_checkpoint_export(CLI::App& checkpoint, Commands& commands) {
  add_command<Export>(checkpoint, commands, "export", "write a checkpoint's weights and tokenizer for other programs");
}

}  // namespace tokamak::cli
