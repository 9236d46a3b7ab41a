// Counts the pretokens of texts. Each thread has its own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/zeroed_pages.h"
#include "tokenizer/scan/scanner.h"
#include "tokenizer/train_bytes/sorted_runs.h"

namespace tokamak {

class PretokenCounter {
 public:
  explicit PretokenCounter(const Scanner& scanner);  // `scanner` must outlive it

  // Counts each pretoken of `text` (valid UTF-8, less than 4 GiB) `times` times.
  void add(std::string_view text, int64_t times);
  void add_pretoken(CountedText pretoken);

  int64_t distinct() const { return static_cast<int64_t>(short_count_ + long_count_); }
  int64_t pretokens() const { return pretokens_; }  // all, of add()
  int64_t bytes() const;                            // memory
  // Whether a table grows soon, and the memory while that happens.
  bool is_nearly_full() const { return short_count_ * 2 > short_.count() || long_count_ * 2 > long_.size(); }
  int64_t bytes_after_growth() const { return 3 * bytes(); }

  // The views are valid until the next change.
  std::vector<CountedText> words() const;
  void clear();  // keeps pretokens()

 private:
  struct ShortSlot {
    PretokenKey key;  // high is 0: none
    int64_t count;
    int64_t unused;  // no slot lies in two lines of the cache
  };
  // On huge pages: most of the time of counting was that of page walks.
  class ShortSlots {
   public:
    explicit ShortSlots(size_t count) : pages_(count * sizeof(ShortSlot)) {}
    size_t count() const { return pages_.bytes() / sizeof(ShortSlot); }  // a power of two
    std::span<ShortSlot> all() const { return {static_cast<ShortSlot*>(pages_.data()), count()}; }
    ShortSlot& operator[](uint64_t i) const { return static_cast<ShortSlot*>(pages_.data())[i & (count() - 1)]; }

   private:
    ZeroedPages pages_;
  };
  struct LongSlot {
    uint64_t hash = 0;
    uint64_t begin = 0;   // in long_bytes_
    uint32_t length = 0;  // 0: none
    int64_t count = 0;
  };

  void add_short(PretokenKey key, uint64_t hash, int64_t times);
  void add_long(std::string_view text, uint64_t hash, int64_t times);
  void grow_short();
  void grow_long();

  const Scanner& scanner_;
  static constexpr size_t kFirstSlots = size_t{1} << 14;

  ShortSlots short_{kFirstSlots};  // open addressing
  std::vector<LongSlot> long_;     // likewise; their number is a power of two
  size_t short_count_ = 0, long_count_ = 0;
  std::string long_bytes_;
  int64_t pretokens_ = 0;
};

// Replaces invalid bytes of `text` by U+FFFD.
void make_valid_utf8(std::string& text);

}  // namespace tokamak
