#include "data/verify.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "data/file_pool.h"
#include "data/manifest.h"
#include "data/shard_reader.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

constexpr int64_t kChunk = int64_t{1} << 20;  // bytes, and tokens, read at once

std::string file_hash(const std::string& path) {
  const InputFile file(path, Kind::kData);
  std::vector<std::byte> buffer(static_cast<size_t>(kChunk));
  Hasher hasher;
  for (int64_t at = 0; at < file.size(); at += kChunk) {
    const auto chunk = std::span(buffer).first(std::min(kChunk, file.size() - at));
    file.read_at(at, chunk);
    hasher.update(chunk);
  }
  return hasher.hex128();
}

// Runs a check and records its error as a problem. Returns whether it passed.
bool passes(VerifyReport& report, const std::function<void()>& check) {
  try {
    check();
    return true;
  } catch (const Error& e) {
    report.problems.emplace_back(e.what());
    return false;
  }
}

// Checks every block, so that the report names all damaged ones, then the whole file.
bool check_file(VerifyReport& report, const CheckedFile& file, const std::string& recorded) {
  bool sound = true;
  for (int64_t block = 0; block < file.blocks(); ++block) {
    sound &= passes(report, [&] { file.check_block(block); });
  }
  return sound && passes(report, [&] {
           const std::string found = file_hash(file.path());
           if (found == recorded) return;
           fail(Kind::kData, str(file.path(), " has checksum ", found, "; its manifest says ", printable(recorded)));
         });
}

// Checks every token: its range, the maximum id, and the last token of each document.
void check_tokens(const Shard& shard, const Manifest& manifest) {
  const ShardInfo& info = shard.info();
  const std::string& path = shard.bin().path();
  std::vector<int32_t> ids;
  std::vector<int32_t> starts;
  int32_t largest = -1;
  int32_t last = manifest.eos_id;  // last token of the previous chunk
  for (int64_t at = 0; at < shard.tokens(); at += kChunk) {
    ids.resize(std::min(kChunk, shard.tokens() - at));
    shard.read(at, manifest.vocab_size, ids);
    largest = std::max(largest, *std::max_element(ids.begin(), ids.end()));
    if (manifest.eos_id < 0) continue;
    starts.clear();
    shard.document_starts(at, std::ssize(ids), 0, starts);
    for (const int32_t start : starts) {
      const int32_t end = start == 0 ? last : ids[static_cast<size_t>(start) - 1];
      if (end == manifest.eos_id) continue;
      fail(Kind::kData, str("the document of ", path, " that ends at token ", at + start, " ends in id ", end,
                            "; its manifest says ", manifest.eos_id));
    }
    last = ids.back();
  }
  if (manifest.eos_id >= 0 && last != manifest.eos_id) {
    fail(Kind::kData, str("the last document of ", path, " ends in id ", last, ", not ", manifest.eos_id));
  }
  if (largest != info.max_token_id) {
    fail(Kind::kData, str("the largest id of ", path, " is ", largest, "; its manifest says ", info.max_token_id));
  }
}

void check_tokenizer(const std::string& directory, const TokenizerIdentity& tokenizer) {
  if (tokenizer.file.empty()) return;
  const std::string path = tokenizer.path_in(directory);
  const std::string found = hash_with_policy(file_hash(path), specials_policy_of(tokenizer.hash));
  if (found != tokenizer.hash) {
    fail(Kind::kData, str(path, " has checksum ", found, "; its manifest says ", printable(tokenizer.hash)));
  }
}

}  // namespace

VerifyReport verify_dataset(const std::string& directory, const std::function<void(int64_t, int64_t)>& progress) {
  const Manifest manifest = read_manifest(directory);
  FilePool pool;
  VerifyReport report;
  report.tokens = manifest.tokens();
  report.documents = manifest.documents();
  report.shards = std::ssize(manifest.shards);
  int64_t total = 0;
  for (const ShardInfo& info : manifest.shards) total += info.bytes + info.index_bytes;
  passes(report, [&] { check_tokenizer(directory, manifest.tokenizer); });
  for (const ShardInfo& info : manifest.shards) {
    std::unique_ptr<Shard> shard;
    const bool opened = passes(report, [&] {
      shard = std::make_unique<Shard>(directory, info, manifest.token_type, pool);
      shard->bin();
    });
    if (opened) {
      const bool bin = check_file(report, shard->bin(), info.hash);
      const bool idx = check_file(report, shard->idx(), info.index_hash);
      if (bin && idx) {
        passes(report, [&] {
          shard->check_index();
          check_tokens(*shard, manifest);
        });
      }
    }
    report.bytes += info.bytes + info.index_bytes;
    if (progress) progress(report.bytes, total);
  }
  return report;
}

}  // namespace tokamak
