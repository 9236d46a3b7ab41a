#include "tokenizer/train_bytes/learn_merges.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/error.h"
#include "base/parallel_for.h"
#include "tokenizer/hf/byte_map.h"
#include "tokenizer/train_bytes/merge_changes.h"
#include "tokenizer/train_bytes/pair_counts.h"

namespace tokamak {

namespace {

constexpr int64_t kWordsOfThread = 8192;       // fewer are merged faster by one thread
constexpr int64_t kMergesBetweenReports = 64;  // of progress

// Lists of words, in memory that never moves and is freed as a whole.
class Positions {
 public:
  std::span<uint32_t> take(size_t count) {
    if (count > left_) {
      left_ = std::max(count, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<uint32_t[]>(left_));
      next_ = blocks_.back().get();
      total_ += left_;
    }
    const std::span<uint32_t> taken(next_, count);
    next_ += count;
    left_ -= count;
    return taken;
  }
  int64_t bytes() const { return static_cast<int64_t>(total_ * sizeof(uint32_t)); }

 private:
  static constexpr size_t kBlock = size_t{1} << 16;
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
  uint32_t* next_ = nullptr;
  size_t left_ = 0, total_ = 0;
};

// A pair that may be merged next. Its count is that of the time when it was pushed. Two candidates may have the same
// pair, because two merges may give the same piece; they differ in the step.
struct Candidate {
  int64_t count;
  uint32_t left, right;
  const uint32_t* words;  // where it is merged; all differ
  uint32_t word_count;
  uint32_t step;  // the merge that made it
};

struct LowerPriority {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (a.left != b.left) return a.left > b.left;
    if (a.right != b.right) return a.right > b.right;
    return a.step > b.step;
  }
};

class Learner {
 public:
  Learner(WordList words, const LearnOptions& options) : words_(std::move(words)), options_(options) {
    for (const std::string& piece : options.first_pieces) id_of(piece);
    add_bytes();
    count_pairs();
  }

  LearnedMerges run(const LearnProgress& progress) {
    std::vector<std::pair<uint64_t, int64_t>> merges;  // pair, its first place
    int64_t last_count = 0, peak = bytes();
    while (std::ssize(pieces_) < options_.vocab_size && !candidates_.empty()) {
      Candidate best = pop();
      const uint64_t pair = PairCounts::key(best.left, best.right);
      if (const int64_t count = counts_.of(pair); best.count != count) {
        best.count = count;
        push(best);
        continue;
      }
      if (best.count < std::max<int64_t>(1, options_.min_frequency)) break;
      last_count = best.count;
      const uint32_t result = id_of(pieces_[best.left] + pieces_[best.right]);
      merges.push_back({pair, std::ssize(merges)});
      merge(best, result);
      if (std::ssize(merges) % kMergesBetweenReports != 0) continue;
      peak = std::max(peak, bytes());
      if (progress) progress(std::ssize(pieces_));
    }
    return {std::move(pieces_), last_ranks(std::move(merges)), last_count, std::max(peak, bytes())};
  }

 private:
  uint32_t id_of(const std::string& piece) {
    const auto [at, is_new] = ids_.try_emplace(piece, static_cast<uint32_t>(pieces_.size()));
    if (is_new) {
      pieces_.push_back(piece);
      lengths_.push_back(std::count_if(piece.begin(), piece.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    }
    return at->second;
  }

  // The bytes' ids are in the order of their characters' code points, which is that of their UTF-8.
  void add_bytes() {
    std::array<std::string, 256> names;
    for (size_t byte = 0; byte < 256; ++byte)
      append_printable_bytes(std::string(1, static_cast<char>(byte)), names[byte]);
    std::vector<std::string> sorted(names.begin(), names.end());
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& name : sorted) id_of(name);
    std::array<uint32_t, 256> ids;
    for (size_t byte = 0; byte < 256; ++byte) ids[byte] = id_of(names[byte]);
    for (uint32_t& symbol : words_.symbols) symbol = ids[symbol];
  }

  std::span<uint32_t> symbols_of(uint32_t word) {
    return std::span(words_.symbols).subspan(words_.begins[word], words_.lengths[word]);
  }

  void count_pairs();
  void merge(const Candidate& candidate, uint32_t result);

  void push(const Candidate& candidate) {
    candidates_.push_back(candidate);
    std::push_heap(candidates_.begin(), candidates_.end(), LowerPriority());
  }

  Candidate pop() {
    std::pop_heap(candidates_.begin(), candidates_.end(), LowerPriority());
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    return best;
  }

  // A pair that was merged twice has the later rank.
  static std::vector<std::pair<uint32_t, uint32_t>> last_ranks(std::vector<std::pair<uint64_t, int64_t>> merges) {
    std::unordered_map<uint64_t, int64_t> last;
    for (const auto& [pair, rank] : merges) last[pair] = rank;
    std::vector<std::pair<uint32_t, uint32_t>> kept;
    for (const auto& [pair, rank] : merges) {
      if (last[pair] == rank) kept.emplace_back(static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair));
    }
    return kept;
  }

  int64_t bytes() const {
    return static_cast<int64_t>(words_.symbols.capacity() * sizeof(uint32_t) +
                                words_.counts.capacity() * (sizeof(int64_t) + sizeof(uint64_t) + sizeof(uint32_t)) +
                                candidates_.capacity() * sizeof(Candidate)) +
           positions_.bytes() + counts_.bytes();
  }

  WordList words_;
  const LearnOptions& options_;
  std::vector<std::string> pieces_;
  std::vector<int64_t> lengths_;  // of the pieces, characters
  std::unordered_map<std::string, uint32_t> ids_;
  PairCounts counts_;
  Positions positions_;
  std::vector<Candidate> candidates_;  // a heap
  std::vector<MergeChanges> changes_;  // one of each thread
  uint32_t step_ = 0;                  // merges so far
};

// The pairs of bytes, in two passes: sizes, then lists.
void Learner::count_pairs() {
  constexpr uint32_t kNoWord = ~0u;
  const size_t n = pieces_.size();
  struct Pair {
    int64_t count = 0;
    uint32_t words = 0, last_word = kNoWord;
    std::span<uint32_t> list;
  };
  std::vector<Pair> pairs(n * n);
  for (const bool lists : {false, true}) {
    for (Pair& pair : pairs) {
      if (lists) pair.list = positions_.take(pair.words);
      pair.words = 0;
      pair.last_word = kNoWord;
    }
    for (int64_t word = 0; word < words_.size(); ++word) {
      const auto w = static_cast<uint32_t>(word);
      const std::span<const uint32_t> symbols = symbols_of(w);
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        Pair& pair = pairs[symbols[i] * n + symbols[i + 1]];
        if (!lists) pair.count += words_.counts[word];
        if (pair.last_word == w) continue;
        pair.last_word = w;
        if (lists) pair.list[pair.words] = w;
        ++pair.words;
      }
    }
  }
  for (uint32_t left = 0; left < n; ++left) {
    for (uint32_t right = 0; right < n; ++right) {
      const Pair& pair = pairs[left * n + right];
      if (pair.count <= 0) continue;
      counts_.add(PairCounts::key(left, right), pair.count);
      push({pair.count, left, right, pair.list.data(), pair.words, 0});
    }
  }
}

void Learner::merge(const Candidate& candidate, uint32_t result) {
  ++step_;
  const int64_t longest = options_.max_token_length;
  const MergeRule rule{candidate.left, candidate.right, result,
                       longest > 0 ? longest - lengths_[result] : std::numeric_limits<int64_t>::max()};
  const int64_t count = candidate.word_count;
  const int64_t threads = std::clamp<int64_t>(count / kWordsOfThread, 1, thread_count());
  if (std::ssize(changes_) < threads) changes_.resize(static_cast<size_t>(threads));
  parallel_for(threads, 1, [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      const int64_t begin = count * t / threads, end = count * (t + 1) / threads;
      changes_[t].start(pieces_.size());
      for (int64_t i = begin; i < end; ++i) {
        const uint32_t word = candidate.words[i];
        if (i + 8 < end) __builtin_prefetch(&words_.begins[candidate.words[i + 8]]);
        if (i + 4 < end) __builtin_prefetch(&words_.symbols[words_.begins[candidate.words[i + 4]]]);
        words_.lengths[word] = changes_[t].merge(rule, symbols_of(word), {word, words_.counts[word]}, lengths_);
      }
    }
  });
  MergeChanges& all = changes_[0];
  for (int64_t t = 1; t < threads; ++t) all.append(changes_[t]);
  for (const PairChange& change : all.pairs()) counts_.add(change.pair, change.count);
  // A list for each pair that is new somewhere, filled in the order of the words.
  std::vector<std::span<uint32_t>> lists;
  for (const PairChange& change : all.pairs()) {
    lists.push_back(positions_.take(change.words));
    const int64_t now = change.words > 0 ? counts_.of(change.pair) : 0;
    if (now <= 0) continue;
    push({now, static_cast<uint32_t>(change.pair >> 32), static_cast<uint32_t>(change.pair), lists.back().data(),
          change.words, step_});
  }
  for (const auto& [pair, word] : all.places()) {
    lists[pair].front() = word;
    lists[pair] = lists[pair].subspan(1);
  }
}

}  // namespace

LearnedMerges learn_merges(WordList words, const LearnOptions& options, const LearnProgress& progress) {
  return Learner(std::move(words), options).run(progress);
}

}  // namespace tokamak
