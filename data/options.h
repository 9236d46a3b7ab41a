// Options of the training data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

// How the files of a source are read; docs/data.md describes each format.
enum class SourceFormat { kAuto, kTokamak, kMegatron, kDatatrove, kLlmc, kOlmo, kMds, kJsonl };
inline const std::vector<std::string>& enum_names(SourceFormat) {
  static const std::vector<std::string> names = {"auto", "tokamak", "megatron", "datatrove",
                                                 "llmc", "olmo",    "mds",      "jsonl"};
  return names;
}

// The type of a token in a file. kAuto: the file says, or its names do.
enum class TokenElement { kAuto, kUint8, kInt8, kUint16, kInt16, kUint32, kInt32, kUint64, kInt64 };
inline const std::vector<std::string>& enum_names(TokenElement) {
  static const std::vector<std::string> names = {"auto",   "uint8", "int8",   "uint16", "int16",
                                                 "uint32", "int32", "uint64", "int64"};
  return names;
}

struct SourceOptions {
  std::string path;
  double weight = 1.0;
  SourceFormat format = SourceFormat::kAuto;
  std::string tokenizer;
  int64_t delimiter_id = -1;
  TokenElement token_type = TokenElement::kAuto;
  double max_epochs = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path,
      "tokenized data: a directory with manifest.json, or another program's files (a directory, file or prefix)");
    v("weight", weight,
      "sampling weight: the source supplies weight / (sum of weights) of the tokens; a larger share repeats its data "
      "sooner");
    v("format", format, "format of the files; auto detects it, and an error names what does not fit");
    v("tokenizer", tokenizer,
      "tokenizer of another program's files; without it the source has no samples and mixes only with its like");
    v("delimiter_id", delimiter_id,
      "id between documents in files without an index of them; -1: the tokenizer's EOS, or for llmc its BOS or EOS");
    v("token_type", token_type, "type of the tokens in raw files, whose bytes do not say it; a wrong one reads noise");
    v("max_epochs", max_epochs,
      "refuse to start if the run would read this source more than so many times, even if data.max_epochs allows it; "
      "0: no limit");
  }
};

enum class SampleOrder { kShuffled, kSequential, kMegatron };
inline const std::vector<std::string>& enum_names(SampleOrder) {
  static const std::vector<std::string> names = {"shuffled", "sequential", "megatron"};
  return names;
}

enum class Packing { kWindows, kBestFit };
inline const std::vector<std::string>& enum_names(Packing) {
  static const std::vector<std::string> names = {"windows", "best_fit"};
  return names;
}

struct DataOptions {
  int64_t sequence_length = 0;
  std::vector<SourceOptions> sources;
  std::vector<SourceOptions> validation;
  bool document_masking = true;
  SampleOrder order = SampleOrder::kShuffled;
  std::string megatron_split;
  int64_t megatron_samples = 0;
  Packing packing = Packing::kWindows;
  int64_t shuffle_block = 0;
  double max_epochs = 0;
  AutoInt grid_length;
  int64_t read_retries = 5;
  std::string cache;

  template <class Visitor>
  void fields(Visitor& v) {
    v("sequence_length", sequence_length,
      "tokens per sequence, T; longer ones teach longer context, and the cost of attention grows with T^2; required");
    v("sources", sources, "training data sets and their weights; required");
    v("validation", validation,
      "held-out data sets; without them there is no validation loss, and overfitting stays unseen");
    v("document_masking", document_masking,
      "attention stays inside a document; off, a token also attends to unrelated documents before its own, which "
      "costs FLOPs");
    v("order", order,
      "shuffled: windows in a new order each epoch; sequential: stored order, similar documents in a row; megatron: "
      "Megatron-LM's samples, from arrays");
    v("megatron_split", megatron_split,
      "Megatron's --split for order: megatron, as in 969,30,1: trains on the first part of each source; empty: on all");
    v("megatron_samples", megatron_samples,
      "samples that order: megatron is built for, as another number changes the whole order; 0: those of this run");
    v("packing", packing,
      "windows: the text cut every sequence_length tokens; best_fit: rows of whole documents from `tokamak data pack`, "
      "with some padding");
    v("shuffle_block", shuffle_block,
      "with order: shuffled, permute blocks of so many windows, then windows within 16 blocks: fewer scattered reads, "
      "less mixing; 0: all windows");
    v("max_epochs", max_epochs,
      "refuse to start if the run would read any source more than so many times; repeated data teaches less each time; "
      "0: no limit");
    v("grid_length", grid_length,
      "tokens of the windows that are shuffled, each a multiple of all stages' lengths; a larger one lets a longer stage "
      "come later; auto: the longest");
    v("read_retries", read_retries,
      "repetitions of a failed read (EIO, ESTALE, a short file), after 0.1, 0.4, 1.6, ... s, before the run ends; more "
      "outlast a longer failover");
    v("cache", cache,
      "directory of the data sets made of sources of text, which other runs reuse; empty: data/ in run.output_dir");
  }
};

}  // namespace tokamak
