#include "eval/sequence_scores.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

// Sequences [begin, end), computed in one batch.
struct Pack {
  size_t begin = 0;
  size_t end = 0;
};

int64_t inputs(const ScoredSequence& sequence) { return std::ssize(sequence.tokens) - 1; }

// Packs sequences in order, as many as fit. Packs, and hence results, do not depend on the number of ranks.
std::vector<Pack> make_packs(std::span<const ScoredSequence> sequences, const Transformer& model) {
  std::vector<Pack> packs;
  int64_t room = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t needed = inputs(sequences[i]);
    TOKAMAK_CHECK(
        needed >= 1 && needed <= model.max_length() && sequences[i].scored >= 1 && sequences[i].scored <= needed,
        "sequence ", i, " has ", needed + 1, " tokens, ", sequences[i].scored, " of them scored");
    if (packs.empty() || needed > room) {
      packs.push_back({i, i});
      room = model.max_tokens();
    }
    packs.back().end = i + 1;
    room -= needed;
  }
  return packs;
}

// A micro-batch whose documents are sequences. Only continuations have targets.
struct PackedBatch {
  void add(const ScoredSequence& sequence) {
    const auto n = static_cast<size_t>(inputs(sequence));
    const size_t context = n - static_cast<size_t>(sequence.scored);
    for (size_t i = 0; i < n; ++i) {
      tokens.push_back(sequence.tokens[i]);
      targets.push_back(i >= context ? sequence.tokens[i + 1] : -1);
      positions.push_back(static_cast<int32_t>(i));
    }
    cu_seqlens.push_back(static_cast<int32_t>(tokens.size()));
  }

  // Adds one token on a rank that has no sequences left, because weight gathers are collective.
  void add_filler() {
    tokens.push_back(0);
    targets.push_back(-1);
    positions.push_back(0);
    cu_seqlens.push_back(1);
  }

  TokenBatch view() const { return {tokens, targets, positions, cu_seqlens}; }

  std::vector<int32_t> tokens, targets, positions;
  std::vector<int32_t> cu_seqlens = {0};
};

class Progress {
 public:
  explicit Progress(size_t total) : total_(total) {}

  void reached(size_t done) {
    if (since_line_.seconds() < kInterval || done == 0) return;
    since_line_.restart();
    const double left = since_start_.seconds() / double(done) * static_cast<double>(total_ - done);
    log::info(done, " of ", total_, " sequences scored, ", human_duration(left), " left");
  }

 private:
  static constexpr double kInterval = 30;  // seconds
  size_t total_;
  Stopwatch since_start_, since_line_;
};

// Each sequence has its score on one rank, and none on the others.
void share(Comm& comm, std::vector<SequenceScore>& scores) {
  if (comm.size() == 1) return;
  const std::vector<std::string> parts = comm.gather_all(bytes_of_values(std::span<const SequenceScore>(scores)));
  std::fill(scores.begin(), scores.end(), SequenceScore());
  for (const std::string& bytes : parts) {
    const std::vector<SequenceScore> part = values_of_bytes<SequenceScore>(bytes);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i].log_likelihood += part[i].log_likelihood;
      scores[i].greedy = scores[i].greedy && part[i].greedy;
    }
  }
}

}  // namespace

double nats_of(std::span<const SequenceScore> scores) {
  double nats = 0;
  for (const SequenceScore& score : scores) nats -= score.log_likelihood;
  return nats;
}

std::vector<SequenceScore> score_sequences(Engine& engine, std::span<const ScoredSequence> sequences,
                                           const std::function<void()>& between) {
  Comm& data = engine.mesh().data();
  Stream& compute = engine.compute();
  const std::vector<Pack> packs = make_packs(sequences, engine.model());
  const auto ranks = static_cast<size_t>(data.size());
  std::vector<SequenceScore> scores(sequences.size());
  std::vector<float> losses, greedy;
  Progress progress(sequences.size());

  for (size_t first = 0; first < packs.size(); first += ranks) {
    between();
    const size_t mine = first + static_cast<size_t>(data.rank());
    const Pack pack = mine < packs.size() ? packs[mine] : Pack{};
    PackedBatch batch;
    for (size_t i = pack.begin; i < pack.end; ++i) batch.add(sequences[i]);
    if (batch.tokens.empty()) batch.add_filler();

    const TokenScores tokens = engine.model().evaluate(compute, batch.view(), engine.sums());
    losses.resize(batch.tokens.size());
    greedy.resize(batch.tokens.size());
    engine.backend().device->copy_to_host(compute, tokens.loss, losses.data());
    engine.backend().device->copy_to_host(compute, tokens.greedy, greedy.data());
    compute.synchronize();
    for (size_t i = pack.begin, document = 0; i < pack.end; ++i, ++document) {
      for (int64_t at = batch.cu_seqlens[document + 1] - sequences[i].scored; at < batch.cu_seqlens[document + 1];
           ++at) {
        scores[i].log_likelihood -= double(losses[static_cast<size_t>(at)]);
        scores[i].greedy = scores[i].greedy && greedy[static_cast<size_t>(at)] != 0;
      }
    }
    if (engine.comm().rank() == 0) progress.reached(pack.end);
  }
  share(data, scores);
  return scores;
}

}  // namespace tokamak
