#include "data/prepare/text_sources.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/stores/source.h"
#include "data/stores/token_file.h"
#include "data/text/text_reader.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

constexpr int64_t kSampleBytes = int64_t{2} << 20;  // of a file, for an estimate
constexpr int64_t kIndexBytes = 20;                 // of a document

bool is_complete(const std::string& data_set) { return exists(data_set + "/" + kDatasetManifest); }

std::string lock_path(const std::string& data_set) { return data_set + ".lock"; }

// Returns with the lock of a data set, or once another process has made it. A file system without locks has none: then
// several processes may write the same tokens, and the last one's replace the others'.
Descriptor lock_or_wait(const std::string& data_set, const std::function<void()>& wait) {
  Descriptor lock = open_regular(lock_path(data_set), O_RDWR | O_CREAT | O_CLOEXEC);
  if (!lock) fail(Kind::kData, str("cannot open ", lock_path(data_set), ": ", open_problem(errno)));
  bool said = false;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && !is_complete(data_set)) {
    if (!said)
      log::info("another process is making ", data_set, " (it holds ", lock_path(data_set), "): waiting for it");
    said = true;
    wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return lock;
}

// Only when the data set is complete: whoever waits for this lock, or takes a new one, then finds it so.
void remove_lock(const std::string& data_set) {
  std::error_code harmless;
  std::filesystem::remove(lock_path(data_set), harmless);
}

// The first documents of a file: bytes of the file, and what they become.
struct Sampled {
  int64_t bytes = 0, tokens = 0, documents = 0;
};

Sampled sample_of(const TextFile& file, Encoder& encoder) {
  const std::vector<TextFile> files = {file};
  const TokenizeOptions defaults;
  TextReader reader(files, defaults.max_document_bytes);
  TextParser parser(defaults.text_key);
  Document document;
  Sampled out;
  bool ended = false;
  for (int64_t read = 0; read < kSampleBytes;) {
    ended = !reader.next(document);
    if (ended) break;
    read += std::ssize(document.text) + 1;
    out.bytes = read;
    parser.parse(document);
    encoder.encode(document.text, document.ids);
    out.tokens += std::ssize(document.ids) + 1;
    ++out.documents;
  }
  if (ended || compression_of(file.path) != Compression::kNone) out.bytes = reader.bytes_read();
  return out;
}

}  // namespace

std::string text_cache(const DataOptions& data, const std::string& output_dir) {
  return data.cache.empty() ? output_dir + "/data" : data.cache;
}

TextSource find_text_source(const SourceOptions& source, const std::string& cache) {
  Hasher hasher;
  const auto add = [&](const std::string& text) {
    hasher.update(std::as_bytes(std::span(text)));
    hasher.update(std::as_bytes(std::span("", 1)));  // a NUL ends each text
  };
  add(read_source_manifest(source).tokenizer.hash);
  TextSource text;
  text.files = find_text_files({source.path});
  for (const TextFile& file : text.files) {
    const auto changed = std::filesystem::last_write_time(file.path).time_since_epoch().count();
    add(str(std::filesystem::path(file.path).filename().string(), " ", changed));
    hash_sampled(InputFile(file.path, Kind::kData), hasher);
    text.bytes += file.bytes;
  }
  text.data_set = cache + "/" + hasher.hex128();
  text.is_made = is_complete(text.data_set);
  return text;
}

std::optional<TokenizeReport> make_data_set(const SourceOptions& source, const TextSource& text,
                                            const std::string& tool,
                                            const std::function<void(const TokenizeProgress&)>& progress) {
  if (is_complete(text.data_set)) return std::nullopt;
  make_directories(parent_directory(text.data_set), Kind::kData);
  const Descriptor lock = lock_or_wait(text.data_set, [&] { progress({}); });
  if (is_complete(text.data_set)) {
    remove_lock(text.data_set);
    return std::nullopt;
  }
  TokenizeOptions options;
  options.inputs = {source.path};
  options.output = text.data_set;
  options.existing = Existing::kReplace;
  options.tool = tool;
  const TokenizeReport report = tokenize(*load_tokenizer(source.tokenizer), options, progress);
  remove_lock(text.data_set);
  return report;
}

TextEstimate estimate_data_set(const SourceOptions& source, const TextSource& text, int64_t files) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(source.tokenizer);
  const std::unique_ptr<Encoder> encoder = tokenizer->make_encoder();
  Sampled all;
  const int64_t count = std::ssize(text.files), step = std::max<int64_t>(1, (count + files - 1) / files);
  for (int64_t i = 0; i < count; i += step) {
    const Sampled one = sample_of(text.files[static_cast<size_t>(i)], *encoder);
    all.bytes += one.bytes, all.tokens += one.tokens, all.documents += one.documents;
  }
  const double times = all.bytes > 0 ? double(text.bytes) / double(all.bytes) : 0;
  const int64_t width = token_bytes(token_type_for(tokenizer->vocab_size()));
  return {static_cast<int64_t>(double(all.tokens) * times),
          static_cast<int64_t>(double(all.tokens * width + all.documents * kIndexBytes) * times)};
}

}  // namespace tokamak
