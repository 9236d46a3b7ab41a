#include "data/stores/convert.h"

#include <algorithm>

#include "base/error.h"
#include "data/stores/document_sink.h"
#include "data/stores/source.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

constexpr int64_t kConvertedTokens = 1 << 18;

// The tokenizer of a source: the given one, or the copy in a data set of ours. "": there is none.
std::string tokenizer_of(const SourceOptions& source, const Manifest& manifest) {
  return source.tokenizer.empty() ? manifest.tokenizer.path_in(source.path) : source.tokenizer;
}

int32_t llmc_delimiter(const SourceOptions& source, const Manifest& manifest) {
  if (source.delimiter_id >= 0) return static_cast<int32_t>(source.delimiter_id);
  if (manifest.bos_id >= 0) return manifest.bos_id;
  if (manifest.eos_id >= 0) return manifest.eos_id;
  if (source.tokenizer.empty()) return -1;
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(source.tokenizer);
  return tokenizer->eos_id() >= 0 ? tokenizer->eos_id() : tokenizer->bos_id();
}

std::unique_ptr<DocumentSink> open_sink(const ConvertOptions& options, const OpenSource& source,
                                        const std::string& directory) {
  SinkOptions sink{directory, source.manifest, options.shard_tokens, -1};
  Manifest& head = sink.head;
  head.shards.clear();
  head.tool = options.tool;
  if (head.vocab_size > 0) head.token_type = token_type_for(head.vocab_size);
  switch (options.to) {
    case ConvertTo::kTokamak: {
      if (head.vocab_size == 0) {
        fail(Kind::kConfig,
             str("a data set of ours names its vocabulary, which ", options.source.path, " does not say"),
             "give the tokenizer with --tokenizer");
      }
      const std::string tokenizer = tokenizer_of(options.source, source.manifest);
      head.tokenizer.file = tokenizer.empty() ? "" : load_tokenizer(tokenizer)->copy_files(directory);
      return make_tokamak_sink(sink);
    }
    case ConvertTo::kMegatron:
      return make_megatron_sink(sink);
    case ConvertTo::kDatatrove:
      return make_datatrove_sink(sink);
    case ConvertTo::kLlmc:
      sink.delimiter = llmc_delimiter(options.source, source.manifest);
      if (sink.delimiter < 0) {
        fail(Kind::kConfig,
             str("llm.c's files mark documents by an id alone, and none is known for ", options.source.path),
             "give the tokenizer with --tokenizer, or the id with --delimiter-id");
      }
      return make_llmc_sink(sink);
  }
  TOKAMAK_UNREACHABLE(static_cast<int>(options.to));
}

}  // namespace

ConvertReport convert(const ConvertOptions& options, const std::function<void(int64_t, int64_t)>& progress) {
  FilePool pool;
  const OpenSource source = open_source(options.source, pool, SequenceOrder::kAny);
  make_directories(parent_directory(options.output), Kind::kData);
  StagedOutput output(options.output, StagedOutput::What::kDirectory, Kind::kData);
  const std::unique_ptr<DocumentSink> sink = open_sink(options, source, output.staging());
  ConvertReport report;
  report.files = std::ssize(source.stores);
  int64_t tokens = 0, bytes = 0;
  for (const auto& store : source.stores) {
    tokens += store->tokens();
    bytes += store->info().bytes;
  }
  const int64_t vocab_size = source.manifest.vocab_size > 0 ? source.manifest.vocab_size : int64_t{1} << 31;
  std::vector<int32_t> ids, starts;
  bool in_document = false;
  const auto end_document = [&] {
    sink->end_document();
    ++report.documents;
    in_document = false;
  };
  for (const auto& store : source.stores) {
    // The last document of a file may go on in the next one.
    if (in_document) {
      starts.clear();
      if (store->tokens() > 0) store->document_starts(0, 1, 0, starts);
      if (!starts.empty()) end_document();
    }
    store->for_each_part([&](const DocumentPart& part) {
      for (int64_t done = 0; done < part.tokens; done += std::ssize(ids)) {
        ids.resize(std::min(kConvertedTokens, part.tokens - done));
        store->read(part.first + done, vocab_size, ids);
        sink->add(ids);
        report.tokens += std::ssize(ids);
        const double share = double(report.tokens) / double(std::max<int64_t>(tokens, 1));
        if (progress) progress(static_cast<int64_t>(share * double(bytes)), bytes);
      }
      in_document = true;
      if (part.ends) end_document();
    });
  }
  if (in_document) end_document();
  if (report.tokens == 0) fail(Kind::kData, str(options.source.path, " has no tokens"));
  sink->finish();
  output.commit();
  return report;
}

}  // namespace tokamak
