#include "data/stores/mds.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <mutex>
#include <set>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/strings.h"
#include "data/document_search.h"
#include "data/stores/mds_index.h"
#include "data/stores/token_file.h"

namespace tokamak {

namespace {

constexpr int64_t kMdsBlock = int64_t{1} << 20;

// The digests of a file's hashes that are known here.
class MdsDigests {
 public:
  MdsDigests(const MdsFile& file, std::string path) : path_(std::move(path)) {
    for (const auto& [algorithm, expected] : file.hashes) {
      if (auto digest = make_digest(algorithm)) digests_.push_back({algorithm, expected, std::move(digest)});
    }
  }
  void update(std::span<const std::byte> bytes) {
    for (Entry& entry : digests_) entry.digest->update(bytes);
  }
  void expect_equal() {
    for (Entry& entry : digests_) {
      const std::string found = entry.digest->hex();
      if (found == entry.expected) continue;
      fail(Kind::kData,
           str(path_, " is damaged: its ", entry.algorithm, " is ", found, "; index.json says ",
               printable(entry.expected)),
           "restore the file from its source");
    }
  }

 private:
  struct Entry {
    std::string algorithm, expected;
    std::unique_ptr<Digest> digest;
  };
  std::string path_;
  std::vector<Entry> digests_;
};

// Names the checksums of the index, for `data verify`: those that are known here, and those that are not.
std::string checksum_remark(const std::vector<MdsShard>& shards) {
  std::set<std::string> known, unknown;
  int64_t without = 0;
  for (const MdsShard& shard : shards) {
    const MdsFile& file = shard.compression == Compression::kNone ? shard.raw : shard.zip;
    bool any = false;
    for (const MdsFile* of : {&file, &shard.raw}) {
      for (const auto& [algorithm, expected] : of->hashes) {
        const bool is_known = make_digest(algorithm) != nullptr;
        (is_known ? known : unknown).insert(printable(algorithm));
        any = any || is_known;
      }
    }
    if (!any) ++without;
  }
  if (known.empty() && unknown.empty()) return "without checksums";
  const auto listed = [](const std::set<std::string>& names) {
    return join(std::vector<std::string>(names.begin(), names.end()), ", ");
  };
  std::string out = known.empty() ? "no checksum was checked" : "checked by " + listed(known);
  if (!unknown.empty()) out += "; NOT checked: " + listed(unknown) + ", unknown here";
  if (!known.empty() && without > 0) out += str("; ", without, " shard(s) without checksums");
  return out;
}

// The bytes of the shards: of raw ones from the file, of compressed ones from a cache of the last used.
class MdsBytes {
 public:
  MdsBytes(const std::string& directory, const std::vector<MdsShard>& shards, FilePool& pool)
      : directory_(directory), shards_(shards), pool_(pool) {}

  std::string path(size_t shard) const { return directory_ + "/" + file_of(shard).name; }
  const MdsFile& file_of(size_t shard) const {
    return shards_[shard].compression == Compression::kNone ? shards_[shard].raw : shards_[shard].zip;
  }
  // Reads a whole file and compares its hashes; those of a compressed shard's contents too.
  void check(size_t shard, const std::function<void(int64_t)>& progress) const {
    MdsDigests digests(file_of(shard), path(shard));
    const int64_t size = file_of(shard).bytes;  // opening compared it
    std::vector<std::byte> block(static_cast<size_t>(std::min(kMdsBlock, size)));
    for (int64_t at = 0; at < size; at += kMdsBlock) {
      const auto piece = std::span(block).first(static_cast<size_t>(std::min(kMdsBlock, size - at)));
      pool_.open(path(shard)).file().read_at(at, piece);
      digests.update(piece);
      progress(std::ssize(piece));
    }
    digests.expect_equal();
    if (shards_[shard].compression != Compression::kNone) decompress(shard);
  }
  // Decompressed shards in the cache, at most.
  int64_t most_cached_bytes() const {
    int64_t bytes = 0;
    for (const MdsShard& shard : shards_) bytes += shard.compression == Compression::kNone ? 0 : shard.raw.bytes;
    return std::min(bytes, kMdsCacheBytes);
  }
  // Within the size of the decompressed shard.
  void read(size_t shard, int64_t offset, std::span<std::byte> out) const {
    if (shards_[shard].compression == Compression::kNone) {
      pool_.open(path(shard)).file().read_at(offset, out);
      return;
    }
    const std::lock_guard lock(mutex_);
    std::memcpy(out.data(), decompressed(shard).data() + offset, out.size());
  }

 private:
  struct Entry {
    size_t shard;
    std::vector<std::byte> bytes;
  };

  const std::vector<std::byte>& decompressed(size_t shard) const {
    const auto known = std::find_if(cache_.begin(), cache_.end(), [&](const Entry& e) { return e.shard == shard; });
    if (known != cache_.end()) {
      cache_.splice(cache_.begin(), cache_, known);
      return cache_.front().bytes;
    }
    const int64_t bytes = shards_[shard].raw.bytes;
    while (!cache_.empty() && cached_ + bytes > kMdsCacheBytes) {
      cached_ -= std::ssize(cache_.back().bytes);
      cache_.pop_back();
    }
    std::vector<std::byte> whole = decompress(shard);
    cache_.push_front({shard, std::move(whole)});
    cached_ += bytes;
    return cache_.front().bytes;
  }

  std::vector<std::byte> decompress(size_t shard) const {
    const MdsShard& of = shards_[shard];
    const std::unique_ptr<ByteStream> stream = open_stream(path(shard), of.compression, Kind::kData);
    std::vector<std::byte> bytes;  // grows with what comes: an index may claim any size
    int64_t filled = 0;
    while (filled < of.raw.bytes) {
      if (filled == std::ssize(bytes)) {
        bytes.resize(static_cast<size_t>(std::min(of.raw.bytes, std::max(kMdsBlock, 2 * filled))));
      }
      const int64_t got = stream->read(std::span(bytes).subspan(static_cast<size_t>(filled)));
      if (got == 0) break;
      filled += got;
    }
    std::byte more;
    if (filled < of.raw.bytes || stream->read(std::span(&more, 1)) > 0) {
      fail(Kind::kData, str(path(shard), " decompresses to ", filled < of.raw.bytes ? "" : "more than ", filled,
                            " bytes; index.json says ", of.raw.bytes));
    }
    MdsDigests digests(of.raw, path(shard));
    digests.update(bytes);
    digests.expect_equal();
    return bytes;
  }

  const std::string& directory_;
  const std::vector<MdsShard>& shards_;
  FilePool& pool_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> cache_;  // the last used first
  mutable int64_t cached_ = 0;      // bytes
};

// The place of a sample's tokens.
struct MdsSample {
  uint32_t offset = 0;  // of the first in the decompressed shard, in bytes
  uint32_t tokens = 0;
};

// The samples of all shards.
class MdsSamples {
 public:
  MdsSamples(const std::string& directory, std::vector<MdsShard> shards, FilePool& pool)
      : directory_(directory), shards_(std::move(shards)), bytes_(directory_, shards_, pool) {
    for (size_t s = 0; s < shards_.size(); ++s) {
      check_size(s, pool);
      firsts_.push_back(count());
      find_samples(s);
    }
    firsts_.push_back(count());
    starts_.push_back(0);
    for (const MdsSample& sample : samples_) starts_.push_back(starts_.back() + sample.tokens);
  }

  int64_t count() const { return std::ssize(samples_); }
  int64_t tokens() const { return starts_.back(); }
  std::span<const int64_t> starts() const { return starts_; }
  int64_t memory_bytes() const {
    return count() * int64_t{sizeof(MdsSample)} + std::ssize(starts_) * int64_t{sizeof(int64_t)} +
           bytes_.most_cached_bytes();
  }
  TokenElement type() const {
    TokenElement widest = TokenElement::kAuto;
    for (const MdsShard& shard : shards_) {
      const TokenElement type = shard.columns.type;
      if (type == TokenElement::kAuto) continue;  // it has no samples
      if (widest == TokenElement::kAuto || element_bytes(type) > element_bytes(widest)) widest = type;
    }
    return widest;
  }
  void read(int64_t first, std::span<int32_t> out) const;
  std::string check_sums(const std::function<void(int64_t)>& progress) const {
    int64_t done = 0;
    for (size_t s = 0; s < shards_.size(); ++s) bytes_.check(s, [&](int64_t bytes) { progress(done += bytes); });
    return checksum_remark(shards_);
  }

 private:
  void check_size(size_t s, FilePool& pool) const {
    const int64_t size = pool.open(bytes_.path(s)).file().size();
    if (size == bytes_.file_of(s).bytes) return;
    fail(Kind::kData, str(bytes_.path(s), " has ", size, " bytes; index.json says ", bytes_.file_of(s).bytes));
  }
  void find_samples(size_t s);
  MdsSample sample_at(size_t s, int64_t begin, int64_t end);

  std::string directory_;
  std::vector<MdsShard> shards_;
  MdsBytes bytes_;
  std::vector<MdsSample> samples_;
  std::vector<int64_t> firsts_;  // (shards + 1): the first sample of each
  std::vector<int64_t> starts_;  // (samples + 1): the first token of each
};

void MdsSamples::find_samples(size_t s) {
  const MdsShard& shard = shards_[s];
  const auto refuse = [&](const std::string& what) { fail(Kind::kData, str(bytes_.path(s), " is damaged: ", what)); };
  const int64_t table_bytes = (shard.samples + 2) * 4;
  if (table_bytes > shard.raw.bytes) {
    refuse(str(shard.raw.bytes, " bytes cannot hold the offsets of ", shard.samples, " samples"));
  }
  std::vector<uint32_t> table(static_cast<size_t>(shard.samples) + 2);
  bytes_.read(s, 0, std::as_writable_bytes(std::span(table)));
  if (table[0] != static_cast<uint64_t>(shard.samples)) {
    refuse(str("it has ", table[0], " samples; index.json says ", shard.samples));
  }
  if (table.back() != static_cast<uint64_t>(shard.raw.bytes)) {
    refuse(str("its samples end at byte ", table.back(), " of ", shard.raw.bytes));
  }
  for (int64_t i = 0; i < shard.samples; ++i) {
    const int64_t begin = table[static_cast<size_t>(i) + 1], end = table[static_cast<size_t>(i) + 2];
    if (begin < table_bytes || end < begin || end > shard.raw.bytes) {
      refuse(str("sample ", i, " lies from byte ", begin, " to ", end, " of ", shard.raw.bytes));
    }
    samples_.push_back(sample_at(s, begin, end));
  }
}

MdsSample MdsSamples::sample_at(size_t s, int64_t begin, int64_t end) {
  MdsColumns& columns = shards_[s].columns;
  const auto refuse = [&](const std::string& what) {
    fail(Kind::kData, str(bytes_.path(s), ": the sample from byte ", begin, " to ", end, " ", what));
  };
  const int64_t varying = std::count(columns.sizes.begin(), columns.sizes.end(), -1);
  std::vector<uint32_t> sizes(static_cast<size_t>(varying));
  if (begin + 4 * varying > end) refuse("is too short for the sizes of its columns");
  bytes_.read(s, begin, std::as_writable_bytes(std::span(sizes)));
  int64_t at = begin + 4 * varying, tokens_at = 0, tokens_bytes = 0;
  auto next_size = sizes.begin();
  for (size_t c = 0; c < columns.sizes.size(); ++c) {
    const int64_t size = columns.sizes[c] >= 0 ? columns.sizes[c] : int64_t{*next_size++};
    if (c == columns.tokens) tokens_at = at, tokens_bytes = size;
    at += size;
    if (at > end) refuse(str("is too short for column ", c, " of ", size, " bytes"));
  }
  if (at != end) refuse(str("is ", end - at, " bytes longer than its columns"));
  if (columns.has_type) {
    uint8_t code = 0;
    if (tokens_bytes < 1) refuse("has an array without a type");
    bytes_.read(s, tokens_at, std::as_writable_bytes(std::span(&code, 1)));
    const TokenElement type = mds_element(code);
    if (type == TokenElement::kAuto) refuse(str("has an array of type ", int{code}, "; tokens are integers"));
    if (columns.type == TokenElement::kAuto) columns.type = type;
    if (columns.type != type) {
      refuse(str("has tokens of ", element_name(type), "; samples before it have ", element_name(columns.type)));
    }
    ++tokens_at, --tokens_bytes;
  }
  if (columns.has_shape) {
    std::array<uint8_t, 1 + 8> head{};
    if (tokens_bytes < 1) refuse("has an array without a shape");
    bytes_.read(s, tokens_at, std::as_writable_bytes(std::span(head)).first(std::min<int64_t>(9, tokens_bytes)));
    const int dimensions = head[0] >> 2, width = 1 << (head[0] & 3);
    if (dimensions != 1) refuse(str("has an array of ", dimensions, " dimensions; tokens have one"));
    if (1 + width > tokens_bytes) refuse("has an array that is shorter than its shape");
    uint64_t count = 0;
    std::memcpy(&count, head.data() + 1, static_cast<size_t>(width));
    tokens_at += 1 + width;
    tokens_bytes -= 1 + width;
    const auto held = static_cast<uint64_t>(tokens_bytes / element_bytes(columns.type));
    if (count != held) refuse(str("has an array of ", count, " tokens in the bytes of ", held));
  }
  if (tokens_bytes % element_bytes(columns.type) != 0) {
    refuse(str("has ", tokens_bytes, " bytes of tokens of ", element_bytes(columns.type)));
  }
  return {static_cast<uint32_t>(tokens_at), static_cast<uint32_t>(tokens_bytes / element_bytes(columns.type))};
}

void MdsSamples::read(int64_t first, std::span<int32_t> out) const {
  std::vector<std::byte> raw;
  for (int64_t i = std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1; !out.empty(); ++i) {
    const MdsSample& sample = samples_[static_cast<size_t>(i)];
    const int64_t skipped = first - starts_[static_cast<size_t>(i)];
    const auto piece = out.first(static_cast<size_t>(std::min<int64_t>(std::ssize(out), sample.tokens - skipped)));
    if (piece.empty()) continue;
    const auto s = static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), i) - firsts_.begin() - 1);
    const TokenElement type = shards_[s].columns.type;
    raw.resize(piece.size() * static_cast<size_t>(element_bytes(type)));
    bytes_.read(s, sample.offset + skipped * element_bytes(type), raw);
    convert_ids(type, raw.data(), piece, first, directory_);
    first += std::ssize(piece);
    out = out.subspan(piece.size());
  }
}

class MdsStore final : public TokenStore {
 public:
  MdsStore(const std::string& directory, ShardInfo info, std::unique_ptr<const MdsSamples> samples)
      : TokenStore(directory, std::move(info)), samples_(std::move(samples)) {}

  TokenElement type() const { return samples_->type(); }

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override {
    const auto read = [&](int64_t document, std::span<int64_t> starts) {
      std::copy_n(samples_->starts().begin() + document, starts.size(), starts.begin());
    };
    append_document_starts(samples_->count(), first, count, base, read, out);
  }
  std::string check_sums(const std::function<void(int64_t)>& progress) const override {
    return samples_->check_sums(progress);
  }
  int64_t memory_bytes() const override { return samples_->memory_bytes(); }

 private:
  void read_ids(int64_t first, std::span<int32_t> out) const override { samples_->read(first, out); }

  std::unique_ptr<const MdsSamples> samples_;
};

}  // namespace

TokenElement mds_token_type(const TokenStore& store) {
  const auto* mds = dynamic_cast<const MdsStore*>(&store);
  return mds == nullptr ? TokenElement::kAuto : mds->type();
}

std::unique_ptr<TokenStore> open_mds(const std::string& directory, TokenElement type, FilePool& pool) {
  const std::string index = directory + "/index.json";
  const std::string text = read_text(index, Kind::kData);
  std::vector<MdsShard> shards = parse_mds_index(text, index, type);
  ShardInfo info;
  info.name = directory;
  Hasher identity;
  identity.update(std::as_bytes(std::span(text)));
  for (const MdsShard& shard : shards) {
    const MdsFile& file = shard.compression == Compression::kNone ? shard.raw : shard.zip;
    hash_sampled(pool.open(directory + "/" + file.name).file(), identity);
    info.bytes += file.bytes;
  }
  info.hash = identity.hex128();
  auto samples = std::make_unique<const MdsSamples>(directory, std::move(shards), pool);
  info.tokens = samples->tokens();
  info.documents = samples->count();
  return std::make_unique<MdsStore>(directory, info, std::move(samples));
}

}  // namespace tokamak
