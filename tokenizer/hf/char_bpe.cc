#include "tokenizer/hf/char_bpe.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

uint64_t pair_of_ids(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

CharBpe::CharBpe(const BpeSpec& model, const std::string& source) : model_(model) {
  if (!model.unk_token.empty() && model.unk_id < 0) {
    fail(Kind::kData, str(source, ": 'model.unk_token' is '", printable(model.unk_token), "', which is no piece"));
  }
  size_t slots = 1024;
  while (slots < 2 * model.merges.size()) slots *= 2;
  slots_.resize(slots);
  for (const BpeMerge& merge : model.merges) {
    const uint64_t pair = pair_of_ids(merge.left, merge.right);
    slots_[slot_of(pair)] = {pair, {merge.rank, merge.result}};
  }
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    byte_ids_[static_cast<size_t>(byte)] = model.pieces.find(str("<0x", kDigits[byte / 16], kDigits[byte % 16], ">"));
  }
}

size_t CharBpe::slot_of(uint64_t pair) const {
  size_t slot = (pair * factor_ >> 32) & (slots_.size() - 1);
  while (slots_[slot].pair != pair && slots_[slot].pair != UINT64_MAX) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

CharBpe::Merge CharBpe::merge_of(int32_t left, int32_t right) const {
  return slots_[slot_of(pair_of_ids(left, right))].merge;
}

void CharBpeEncoder::encode(std::string_view pretoken, std::vector<int32_t>& ids) {
  if (pretoken.empty()) return;
  if (bpe_.model().whole_pieces) {
    if (const int32_t id = bpe_.model().pieces.find(pretoken); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  const bool caches = pretoken.size() <= WordCache::kLongestWord;
  if (caches) {
    if (const auto known = cache_.find(pretoken)) {
      ids.insert(ids.end(), known->begin(), known->end());
      return;
    }
  }
  add_symbols(pretoken);
  merge();
  word_.clear();
  for (const Symbol& symbol : symbols_) {
    if (symbol.id >= 0) word_.push_back(symbol.id);
  }
  ids.insert(ids.end(), word_.begin(), word_.end());
  if (caches) cache_.insert(pretoken, word_);
}

// An unknown token waits for the next piece of the vocabulary, or the end. Byte pieces do not flush it, so it comes
// after them: Hugging Face's model does the same.
void CharBpeEncoder::add_symbols(std::string_view pretoken) {
  const BpeSpec& model = bpe_.model();
  symbols_.clear();
  bool unknown_waits = false;
  for (size_t at = 0; at < pretoken.size();) {
    const auto length = static_cast<size_t>(decode_valid_utf8(pretoken.data() + at).length);
    character_.assign(at > 0 ? model.continuing_subword_prefix : "").append(pretoken.substr(at, length));
    at += length;
    if (at == pretoken.size()) character_ += model.end_of_word_suffix;
    if (const int32_t id = model.pieces.find(character_); id >= 0) {
      if (unknown_waits) add(model.unk_id);
      unknown_waits = false;
      add(id);
      continue;
    }
    const auto byte_id = [&](char byte) { return bpe_.byte_id(static_cast<unsigned char>(byte)); };
    if (model.byte_fallback &&
        std::all_of(character_.begin(), character_.end(), [&](char byte) { return byte_id(byte) >= 0; })) {
      for (const char byte : character_) add(byte_id(byte));
      continue;
    }
    if (model.unk_id < 0) continue;  // the character vanishes
    if (unknown_waits && !model.fuse_unk) add(model.unk_id);
    unknown_waits = true;
  }
  if (unknown_waits) add(model.unk_id);
}

void CharBpeEncoder::add(int32_t id) {
  const int64_t index = std::ssize(symbols_);
  if (index > 0) symbols_.back().after = index;
  symbols_.push_back({id, index - 1, -1});
}

void CharBpeEncoder::consider(int64_t left) {
  if (left < 0 || symbols_[static_cast<size_t>(left)].after < 0) return;
  const Symbol& symbol = symbols_[static_cast<size_t>(left)];
  const CharBpe::Merge merge = bpe_.merge_of(symbol.id, symbols_[static_cast<size_t>(symbol.after)].id);
  if (merge.rank == UINT32_MAX) return;
  heap_.push_back({merge.rank, left, merge.result});
  std::push_heap(heap_.begin(), heap_.end());
}

void CharBpeEncoder::merge() {
  heap_.clear();
  for (int64_t i = 0; i < std::ssize(symbols_); ++i) consider(i);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    Symbol& left = symbols_[static_cast<size_t>(best.left)];
    if (left.id < 0 || left.after < 0) continue;
    Symbol& right = symbols_[static_cast<size_t>(left.after)];
    if (bpe_.merge_of(left.id, right.id).result != best.result) continue;  // one of the two has merged since
    left.id = best.result;
    right.id = -1;
    left.after = right.after;
    if (left.after >= 0) symbols_[static_cast<size_t>(left.after)].before = best.left;
    consider(left.before);
    consider(best.left);
  }
}

}  // namespace tokamak
