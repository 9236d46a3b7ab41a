// Text to ids in chunks of 256 pretokens. The first pass makes a record of each: its key, which is the pretoken itself
// up to 15 bytes, and its hash. It prefetches the cache's line, and reads it 64 pretokens later. The second pass writes
// the ids, and merges the pretokens that no line has.
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

constexpr size_t kChunk = 256;                             // pretokens
constexpr size_t kMostIds = kChunk * LongCache::kLongest;  // of a chunk, without the longer pretokens
constexpr size_t kAhead = 64;                              // pretokens between a prefetch and its use
constexpr size_t kSlack = 4;                               // ids that are written in excess

struct Record {
  PretokenKey key;  // of a long pretoken kLongMark, which is no key
  uint64_t hash;
  uint32_t begin, length;
};

constexpr PretokenKey kLongMark = {0, uint64_t{0xFF} << 56};

// By the length of a pretoken: the bytes of its key that it has, and its key without them.
struct KeyShape {
  PretokenKey mask, rest;
};

constexpr std::array<KeyShape, 17> key_shapes() {
  std::array<KeyShape, 17> shapes{};
  for (size_t length = 0; length <= PretokenKey::kLongest; ++length) {
    const auto bytes = [](size_t count) { return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * count) - 1; };
    shapes[length] = {{bytes(length), length <= 8 ? 0 : bytes(length - 8)}, {0, uint64_t{length} << 56}};
  }
  shapes[16].rest = kLongMark;
  return shapes;
}

alignas(32) constexpr std::array<KeyShape, 17> kKeyShapes = key_shapes();

// The key of the `length` bytes at `at`, by one load of 16 bytes unless it passes `end`.
PretokenKey key_at(const char* at, size_t length, const char* end) {
  if (end - at < 16) return length <= PretokenKey::kLongest ? key_of({at, length}) : kLongMark;
  const auto load = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
  const KeyShape& shape = kKeyShapes[std::min<size_t>(length, 16)];
  const __m128i key = _mm_or_si128(_mm_and_si128(load(at), load(&shape.mask)), load(&shape.rest));
  return {static_cast<uint64_t>(_mm_cvtsi128_si64(key)), static_cast<uint64_t>(_mm_extract_epi64(key, 1))};
}

// In the upper byte of a key: a part of a pretoken. With whole_pieces, the same bytes may be another piece as a
// pretoken.
constexpr uint64_t kPartTag = uint64_t{0x80} << 56;

}  // namespace

struct ByteBpeEncoder::State {
  State(const ByteBpeTables& compiled, const ByteBpeCaches& caches)
      : narrow_wholes(compiled.wholes.narrow),
        wide_wholes(compiled.wholes.wide),
        cuts(&compiled.cuts),
        part_tag(compiled.whole_pieces ? kPartTag : 0),
        merger(std::in_place, compiled.pairs, compiled.byte_ids),
        short_cache(caches.short_entries),
        long_cache(caches.long_bytes) {}
  State(const PieceTable& wholes, PretokenMerger& other, const ByteBpeCaches& caches)
      : narrow_wholes(wholes),
        wide_wholes(wholes),
        part_tag(0),
        other_merger(&other),
        buffered_bytes(other.may_grow() ? 0 : LongCache::kLongest),
        short_cache(caches.short_entries),
        long_cache(caches.long_bytes) {}

  void encode_chunk(std::string_view text, size_t at, std::span<const uint32_t> ends);
  std::span<const uint16_t> look_up(std::string_view text, size_t at, std::span<const uint32_t> ends);
  // Each writes the ids and returns their number. `ids` has space for one id per byte, and kSlack more.
  size_t encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash, uint32_t* ids);
  size_t encode_long(std::string_view pretoken, uint64_t hash, uint32_t* ids);
  size_t merge(std::string_view pretoken, uint64_t hash, uint32_t* ids);
  size_t merge_parts(std::string_view text, uint32_t* ids);
  size_t encode_part(std::string_view part, PretokenKey key, uint64_t hash, uint32_t* ids);
  void encode_longest(std::string_view pretoken, uint64_t hash);  // which the buffer has no space for

  const PieceTable& narrow_wholes;
  const PieceTable& wide_wholes;
  const CutRule* cuts = nullptr;
  const uint64_t part_tag;
  std::optional<ByteMerger> merger;  // one of the two
  PretokenMerger* other_merger = nullptr;
  std::vector<int32_t> merged;  // by other_merger
  // Longer pretokens are written past the buffer and the caches, which have space for one id per byte.
  size_t buffered_bytes = LongCache::kLongest;
  ShortCache short_cache;
  LongCache long_cache;
  std::array<Record, kChunk> records;
  std::array<ShortCache::Value, kChunk> values;
  std::array<uint16_t, kChunk> missing;            // indices of pretokens without a value
  std::array<uint32_t, kMostIds + kSlack> buffer;  // ids of this chunk
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
  uint32_t* ids = buffer.data();
  size_t next = 0;
  const auto write_until = [&](size_t end) {
    for (; next < end; ++next) ids += ShortCache::copy_inline(values[next], ids);
  };
  for (const size_t i : look_up(text, at, ends)) {
    write_until(i);
    next = i + 1;
    const Record& record = records[i];
    const std::string_view pretoken = text.substr(record.begin, record.length);
    if (record.length > buffered_bytes) {
      output->insert(output->end(), buffer.data(), ids);
      ids = buffer.data();
      encode_longest(pretoken, record.hash);
    } else if (record.length <= PretokenKey::kLongest) {
      ids += encode_short(pretoken, record.key, record.hash, ids);
    } else {
      ids += encode_long(pretoken, record.hash, ids);
    }
  }
  write_until(ends.size());
  output->insert(output->end(), buffer.data(), ids);
}

// Makes records and finds values of pretokens, and prefetches for those that have none. Returns the indices of these.
std::span<const uint16_t> ByteBpeEncoder::State::look_up(std::string_view text, size_t at,
                                                         std::span<const uint32_t> ends) {
  size_t count = 0;
  const auto find = [&](size_t i) {
    values[i] = short_cache.find_first(records[i].key, records[i].hash);
    missing[count] = static_cast<uint16_t>(i);
    count += values[i].count() - 1 < ShortCache::kInline ? 0 : 1;
  };
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint32_t length = ends[i] - static_cast<uint32_t>(at);
    const PretokenKey key = key_at(text.data() + at, length, text_end);
    const uint64_t hash = hash_of(key);
    short_cache.prefetch(hash);
    records[i] = {key, hash, static_cast<uint32_t>(at), length};
    at = ends[i];
    if (i >= kAhead) find(i - kAhead);
  }
  for (size_t i = ends.size() - std::min(ends.size(), kAhead); i < ends.size(); ++i) find(i);
  const std::span<const uint16_t> found_not = std::span(missing).first(count);
  for (const size_t i : found_not) {
    Record& record = records[i];
    if (record.length > PretokenKey::kLongest) {
      record.hash = hash_long(text.substr(record.begin, record.length));
      long_cache.prefetch(record.hash);
    } else {
      narrow_wholes.prefetch(record.length, record.hash);
    }
  }
  for (const size_t i : found_not) {
    if (records[i].length > PretokenKey::kLongest) long_cache.prefetch_record(records[i].hash);
  }
  return found_not;
}

size_t ByteBpeEncoder::State::encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash, uint32_t* ids) {
  const ShortCache::Value value = short_cache.find(key, hash);
  if (value.count() != 0) return short_cache.copy(value, ids);
  const size_t count = merge(pretoken, hash, ids);
  // The only part of a pretoken has the same key, and is there.
  if (count > 0 && short_cache.find(key, hash).count() == 0) short_cache.insert(key, hash, {ids, count});
  return count;
}

size_t ByteBpeEncoder::State::encode_long(std::string_view pretoken, uint64_t hash, uint32_t* ids) {
  const std::span<const uint32_t> found = long_cache.find(pretoken, hash);
  if (!found.empty()) return std::copy(found.begin(), found.end(), ids), found.size();
  const size_t count = merge(pretoken, hash, ids);
  if (count > 0) long_cache.insert(pretoken, hash, {ids, count});
  return count;
}

void ByteBpeEncoder::State::encode_longest(std::string_view pretoken, uint64_t hash) {
  if (other_merger != nullptr) return other_merger->merge(pretoken, *output);
  const size_t first = output->size();
  output->resize(first + pretoken.size() + kSlack);
  output->resize(first + merge(pretoken, hash, reinterpret_cast<uint32_t*>(output->data() + first)));
}

size_t ByteBpeEncoder::State::merge(std::string_view pretoken, uint64_t hash, uint32_t* ids) {
  const bool wide = is_wide(pretoken);
  const int32_t id = (wide ? wide_wholes : narrow_wholes).find(pretoken, hash);
  if (id >= 0) return *ids = static_cast<uint32_t>(id), 1;
  if (other_merger == nullptr) return wide ? merge_parts(pretoken, ids) : merger->merge(pretoken, ids);
  merged.clear();
  other_merger->merge(pretoken, merged);
  TOKAMAK_CHECK(merged.size() <= pretoken.size(), merged.size(), " ids of ", pretoken.size(), " bytes");
  std::copy(merged.begin(), merged.end(), ids);
  return merged.size();
}

// Cuts `text` and encodes its parts, which are looked up as pretokens are.
size_t ByteBpeEncoder::State::merge_parts(std::string_view text, uint32_t* ids) {
  std::array<uint32_t, 33> ends;
  std::array<PretokenKey, 33> keys;
  std::array<uint64_t, 33> hashes;
  size_t written = 0;
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
      if (value.count() - 1 < ShortCache::kInline) [[likely]] {
        written += ShortCache::copy_inline(value, ids + written);
        continue;
      }
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      const std::string_view part = text.substr(begin, ends[i] - begin);
      written += part.size() > PretokenKey::kLongest ? merger->merge(part, ids + written)
                                                     : encode_part(part, keys[i], hashes[i], ids + written);
    }
    text.remove_prefix(ends[count - 1]);
  }
  return written;
}

size_t ByteBpeEncoder::State::encode_part(std::string_view part, PretokenKey key, uint64_t hash, uint32_t* ids) {
  const ShortCache::Value value = short_cache.find(key, hash);
  if (value.count() != 0) return short_cache.copy(value, ids);
  const size_t count = merger->merge_short(part, ids);
  short_cache.insert(key, hash, {ids, count});
  return count;
}

}  // namespace tokamak
