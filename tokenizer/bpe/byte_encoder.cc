// Text to ids in chunks of 256 pretokens. The first pass makes a record of each: its key, which is the pretoken itself
// up to 15 bytes, and its hash; it prefetches the cache's line. The second pass looks the keys up and writes the ids.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/error.h"
#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/byte_merge.h"
#include "tokenizer/bpe/long_cache.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/short_cache.h"
#include "tokenizer/bpe/tables.h"

namespace tokamak {

namespace {

constexpr size_t kChunk = 256;                               // pretokens
constexpr size_t kMostIds = PretokenKey::kLongest * kChunk;  // of the short pretokens of a chunk
constexpr size_t kSlack = LongCache::kLongest;               // at least the ids that are written in one go

struct Record {
  PretokenKey key;  // of a long pretoken kLongMark, which is no key
  uint64_t hash;
  uint32_t begin, length;
};

constexpr PretokenKey kLongMark = {0, uint64_t{0xFF} << 56};

// Bytes of a key that belong to a pretoken of a length, and what its upper byte becomes.
struct KeyMask {
  uint64_t low, high, tag, unused;
};

constexpr std::array<KeyMask, 17> key_masks() {
  std::array<KeyMask, 17> masks{};
  for (size_t length = 0; length <= PretokenKey::kLongest; ++length) {
    const auto bytes = [](size_t count) { return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * count) - 1; };
    masks[length] = {bytes(length), length <= 8 ? 0 : bytes(length - 8), uint64_t{length} << 56, 0};
  }
  masks[16] = {0, 0, kLongMark.high, 0};
  return masks;
}

constexpr std::array<KeyMask, 17> kKeyMasks = key_masks();

// The key of the `length` bytes at `at`, by loads of 16 bytes unless these pass `end`.
PretokenKey key_at(const char* at, size_t length, const char* end) {
  if (end - at < 16) return length <= PretokenKey::kLongest ? key_of({at, length}) : kLongMark;
  const KeyMask& mask = kKeyMasks[std::min<size_t>(length, 16)];
  return {load_u64(at) & mask.low, (load_u64(at + 8) & mask.high) | mask.tag};
}

// Whether a byte of `text` may begin a character of three or four bytes. Other scripts have spaces between words.
bool is_wide(std::string_view text) {
  bool wide = false;
  for (const char byte : text) wide |= static_cast<uint8_t>(byte) >= 0xE0;
  return wide;
}

// Caches have space for one id per byte, and no entry is without ids. Another model's pretoken may become more or none.
bool is_cacheable(size_t ids, size_t bytes) { return ids > 0 && ids <= bytes; }

// In the upper byte of a key: a part of a pretoken. With whole_pieces, the same bytes may be another piece as a
// pretoken.
constexpr uint64_t kPartTag = uint64_t{0x80} << 56;

}  // namespace

struct ByteBpeEncoder::State {
  State(const ByteBpeTables& compiled, const ByteBpeCaches& caches)
      : pieces(compiled.pieces),
        cuts(&compiled.cuts),
        part_tag(compiled.whole_pieces ? kPartTag : 0),
        merger(std::in_place, compiled.pairs, compiled.byte_ids),
        short_cache(caches.short_entries),
        long_cache(caches.long_bytes) {}
  State(const PieceTable& all_pieces, PretokenMerger& other, const ByteBpeCaches& caches)
      : pieces(all_pieces),
        part_tag(0),
        other_merger(&other),
        short_cache(caches.short_entries),
        long_cache(caches.long_bytes) {}

  void encode_chunk(std::string_view text, size_t at, std::span<const uint32_t> ends);
  void make_records(std::string_view text, size_t at, std::span<const uint32_t> ends);
  void encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash);
  void encode_long(std::string_view pretoken, uint64_t hash);
  void encode_other(std::string_view pretoken, PretokenKey key, uint64_t hash);
  size_t merge_parts(std::string_view text);
  void encode_part(std::string_view part, PretokenKey key, uint64_t hash);
  bool append_cached(PretokenKey key, uint64_t hash);
  void append_inline(ShortCache::Value value);
  void append(std::span<const uint32_t> found);
  void flush();

  const PieceTable& pieces;
  const CutRule* cuts = nullptr;
  const uint64_t part_tag;
  std::optional<ByteMerger> merger;  // one of the two
  PretokenMerger* other_merger = nullptr;
  std::vector<int32_t> merged;  // by other_merger
  ShortCache short_cache;
  LongCache long_cache;
  std::array<Record, kChunk> records;
  std::array<uint32_t, kMostIds + kSlack> buffer;  // ids of this chunk
  size_t buffered = 0;
  std::vector<int32_t>* output = nullptr;
  const char* text_end = nullptr;
};

ByteBpeEncoder::ByteBpeEncoder(const ByteBpe& bpe, const ByteBpeCaches& caches)
    : state_(std::make_unique<State>(bpe.tables(), caches)) {}

ByteBpeEncoder::ByteBpeEncoder(const PieceTable& pieces, PretokenMerger& merger, const ByteBpeCaches& caches)
    : state_(std::make_unique<State>(pieces, merger, caches)) {}

ByteBpeEncoder::~ByteBpeEncoder() = default;

void ByteBpeEncoder::encode(std::string_view text, const Scanner& scanner, std::vector<int32_t>& ids) {
  std::array<uint32_t, kChunk> ends;
  state_->output = &ids;
  for (size_t at = 0;;) {
    const size_t count = scanner.scan(text, at, ends);
    if (count == 0) break;
    state_->encode_chunk(text, at, std::span(ends).first(count));
    at = ends[count - 1];
  }
}

void ByteBpeEncoder::encode_pretoken(std::string_view pretoken, std::vector<int32_t>& ids) {
  if (pretoken.empty()) return;
  state_->output = &ids;
  const auto end = static_cast<uint32_t>(pretoken.size());
  state_->encode_chunk(pretoken, 0, {&end, 1});
}

void ByteBpeEncoder::State::encode_chunk(std::string_view text, size_t at, std::span<const uint32_t> ends) {
  text_end = text.data() + text.size();
  make_records(text, at, ends);
  buffered = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Record& record = records[i];
    const ShortCache::Value value = short_cache.find_first(record.key, record.hash);
    if (value.count() - 1 < ShortCache::kInline) [[likely]] {
      append_inline(value);
    } else {
      const std::string_view pretoken = text.substr(record.begin, record.length);
      record.length <= PretokenKey::kLongest ? encode_short(pretoken, record.key, record.hash)
                                             : encode_long(pretoken, record.hash);
    }
  }
  flush();
}

void ByteBpeEncoder::State::make_records(std::string_view text, size_t at, std::span<const uint32_t> ends) {
  std::array<uint16_t, kChunk> long_ones;
  size_t long_count = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint32_t length = ends[i] - static_cast<uint32_t>(at);
    const PretokenKey key = key_at(text.data() + at, length, text_end);
    const uint64_t hash = hash_of(key);
    short_cache.prefetch(hash);
    records[i] = {key, hash, static_cast<uint32_t>(at), length};
    long_ones[long_count] = static_cast<uint16_t>(i);
    long_count += length > PretokenKey::kLongest ? 1 : 0;
    at = ends[i];
  }
  for (size_t k = 0; k < long_count; ++k) {
    Record& record = records[long_ones[k]];
    record.hash = hash_long(text.substr(record.begin, record.length));
    long_cache.prefetch(record.hash);
  }
  for (size_t k = 0; k < long_count; ++k) long_cache.prefetch_record(records[long_ones[k]].hash);
}

void ByteBpeEncoder::State::encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash) {
  if (append_cached(key, hash)) return;
  const size_t first = buffered;
  const PieceTable::Piece piece = pieces.find(pretoken, hash);
  if (piece.id >= 0) {
    buffer[buffered++] = static_cast<uint32_t>(piece.id);
  } else if (other_merger != nullptr) {
    return encode_other(pretoken, key, hash);
  } else if (is_wide(pretoken)) {
    if (merge_parts(pretoken) == 1 && part_tag == 0) return;  // it was inserted as a part
  } else {
    buffered += merger->merge_short(pretoken, buffer.data() + buffered);
  }
  short_cache.insert(key, hash, std::span(buffer).subspan(first, buffered - first));
}

void ByteBpeEncoder::State::encode_long(std::string_view pretoken, uint64_t hash) {
  if (buffered > kMostIds) flush();
  const std::span<const uint32_t> found = long_cache.find(pretoken, hash);
  if (!found.empty()) return append(found);
  const PieceTable::Piece piece = pieces.find(pretoken, hash);
  if (piece.id >= 0) {
    buffer[buffered++] = static_cast<uint32_t>(piece.id);
    return;
  }
  flush();
  const size_t first = output->size();
  if (other_merger != nullptr) {
    other_merger->merge(pretoken, *output);
  } else if (is_wide(pretoken)) {
    merge_parts(pretoken);
    flush();
  } else {
    merger->merge(pretoken, *output);
  }
  const size_t count = output->size() - first;
  if (pretoken.size() > LongCache::kLongest || !is_cacheable(count, pretoken.size())) return;
  long_cache.insert(pretoken, hash, {reinterpret_cast<const uint32_t*>(output->data()) + first, count});
}

void ByteBpeEncoder::State::encode_other(std::string_view pretoken, PretokenKey key, uint64_t hash) {
  merged.clear();
  other_merger->merge(pretoken, merged);
  const std::span<const uint32_t> ids(reinterpret_cast<const uint32_t*>(merged.data()), merged.size());
  if (is_cacheable(ids.size(), pretoken.size())) {
    append(ids);
    short_cache.insert(key, hash, ids);
  } else {
    flush();
    output->insert(output->end(), merged.begin(), merged.end());
  }
}

// Cuts `text` and encodes its parts, which are looked up as pretokens are. Returns their number.
size_t ByteBpeEncoder::State::merge_parts(std::string_view text) {
  std::array<uint32_t, 33> ends;
  std::array<PretokenKey, 33> keys;
  std::array<uint64_t, 33> hashes;
  size_t parts = 0;
  while (!text.empty()) {
    const size_t count = cuts->cut(text, ends);
    for (size_t i = 0; i < count; ++i) {
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      keys[i] = key_at(text.data() + begin, ends[i] - begin, text_end);
      keys[i].high |= part_tag;
      hashes[i] = hash_of(keys[i]);
      short_cache.prefetch(hashes[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      const ShortCache::Value value = short_cache.find_first(keys[i], hashes[i]);
      if (buffered > kMostIds) flush();
      if (value.count() - 1 < ShortCache::kInline) [[likely]] {
        append_inline(value);
        continue;
      }
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      const std::string_view part = text.substr(begin, ends[i] - begin);
      if (part.size() > PretokenKey::kLongest) {
        flush();
        merger->merge(part, *output);
      } else {
        encode_part(part, keys[i], hashes[i]);
      }
    }
    text.remove_prefix(ends[count - 1]);
    parts += count;
  }
  return parts;
}

void ByteBpeEncoder::State::encode_part(std::string_view part, PretokenKey key, uint64_t hash) {
  if (append_cached(key, hash)) return;
  const size_t count = merger->merge_short(part, buffer.data() + buffered);
  short_cache.insert(key, hash, std::span(buffer).subspan(buffered, count));
  buffered += count;
}

bool ByteBpeEncoder::State::append_cached(PretokenKey key, uint64_t hash) {
  const ShortCache::Value value = short_cache.find(key, hash);
  if (value.count() == ShortCache::kSpilled) {
    append(short_cache.spilled(value));
  } else {
    append_inline(value);
  }
  return value.count() != 0;
}

// Writes all four ids, of which value.count() count.
void ByteBpeEncoder::State::append_inline(ShortCache::Value value) {
  const uint64_t first_two = value.low & ~(uint64_t{0xFF} << ShortCache::kCountShift);
  std::memcpy(buffer.data() + buffered, &first_two, sizeof first_two);
  std::memcpy(buffer.data() + buffered + 2, &value.high, sizeof value.high);
  buffered += value.count();
}

void ByteBpeEncoder::State::append(std::span<const uint32_t> found) {
  std::copy(found.begin(), found.end(), buffer.data() + buffered);
  buffered += found.size();
}

void ByteBpeEncoder::State::flush() {
  output->insert(output->end(), buffer.data(), buffer.data() + buffered);
  buffered = 0;
}

}  // namespace tokamak
